"""What a GRPO step does beyond the model: rollouts, rewards, advantages, the loss, a loop that resumes."""
