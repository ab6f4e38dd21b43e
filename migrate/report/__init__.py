"""What a conversion or a check has to say, as text, JSON, SARIF or pages."""
