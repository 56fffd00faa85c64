"""Files that run in a framework's own interpreter; nothing here imports Paceline."""
