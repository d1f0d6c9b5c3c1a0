"""Models in other forms than a folder of OpenVINO's, and how they become one."""
