"""What a request itself demands of a node; free for requests that demand nothing."""
