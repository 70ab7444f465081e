import { testContract } from '@aenv/vmm/contract/suite.ts';
import { TestBed } from './support/bed.ts';

testContract('the QEMU driver', () => TestBed.open());
