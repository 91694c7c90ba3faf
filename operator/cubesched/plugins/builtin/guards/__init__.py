"""What no node may fail, whatever the policy says."""
