"""What talks to the outside: the API server, Redis, Prometheus, clocks. Clients stay in here."""
