"""The model of the chips: plain functions on listings and counters. Every figure that it gives is `modelled`."""

from flylab.model.banks import BankCost, bank_conflicts
from flylab.model.coalescing import Coalescing, coalescing
from flylab.model.machine import OPERATIONS, PRODUCTS, Figure, Product, product
from flylab.model.occupancy import Cliff, LaunchOccupancy, occupancy
from flylab.model.roofline import Place, Roofline, roofline
