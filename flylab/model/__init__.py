"""The model of the chips: plain functions on listings and counters. Every figure that it gives is `modelled`."""

from flylab.model.banks import BankCost, bank_conflicts
from flylab.model.caches import CacheShares, cache_shares
from flylab.model.coalescing import Coalescing, coalescing
from flylab.model.cycles import Estimate, Traffic, estimate
from flylab.model.machine import OPERATIONS, PRODUCTS, Figure, Product, product
from flylab.model.occupancy import Cliff, LaunchOccupancy, occupancy
from flylab.model.parameters import Parameters
from flylab.model.path import Wait
from flylab.model.roofline import Place, Roofline, roofline
from flylab.model.work import Work, fit, scaled, work
