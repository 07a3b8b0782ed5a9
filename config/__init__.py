"""Every knob, once: what the configuration file may say, and what it means when it is silent."""
