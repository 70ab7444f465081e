"""matplotlib looks here for window systems, of which there is none."""

backend2gui = {}
