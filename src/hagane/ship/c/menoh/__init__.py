"""The interface of Menoh over that of builds."""
