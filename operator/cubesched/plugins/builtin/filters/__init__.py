"""What a Profile adds to the guards."""
