"""What must hold before anything is released: expectations, the judge, further audits, the gate."""
