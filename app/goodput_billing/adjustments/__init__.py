"""What people write about statements: notes, disputes, their resolution, credits."""
