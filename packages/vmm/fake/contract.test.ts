import { testContract } from '../contract/suite.ts';
import { fakeHarness } from './harness.ts';

testContract('the fake driver', fakeHarness);
