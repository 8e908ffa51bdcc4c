"""The model of the chips: plain functions on listings and counters. Every figure it gives is `modelled`."""

from flylab.model.occupancy import Cliff, LaunchOccupancy, occupancy
