"""What a flow has brought to the target: compared with the source, and waited for."""
