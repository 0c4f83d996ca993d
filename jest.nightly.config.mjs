import { base, engines } from './jest.config.mjs';

// The Jest part of `npm run test:nightly`: loads, sweeps and soaks of minutes, one after another.
export default {
  testTimeout: 1_800_000,
  projects: [{ ...base, ...engines, displayName: 'nightly', testMatch: ['**/*.nightly.spec.ts'] }],
};
