"""What an audit, or the gate, found, in every form in which it is shown."""
