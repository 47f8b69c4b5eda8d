"""What an arm touches while it moves: its body, its path swept ahead, contacts as they come."""
