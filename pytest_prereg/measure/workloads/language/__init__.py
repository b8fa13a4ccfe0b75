"""Causal language models as workloads use them: loading, decoding, and the log-probabilities of tokens."""
