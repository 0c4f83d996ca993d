// One Jest project per kind of test, by file name: *.unit.spec (no I/O), *.int.spec (real engines)
// and *.e2e.spec (the whole stack). Longer tests are *.nightly.spec: see jest.nightly.config.mjs.
export const base = {
  rootDir: import.meta.dirname,
  roots: ['<rootDir>/libs', '<rootDir>/apps', '<rootDir>/tools'],
  testEnvironment: 'node',
  testEnvironmentOptions: { customExportConditions: ['antiphon-source', 'node', 'node-addons'] },
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  modulePathIgnorePatterns: ['/dist/'],
  transform: {
    '\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2023',
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
        },
        module: { type: 'es6' },
      },
    ],
  },
};

export const engines = {
  globalSetup: '<rootDir>/libs/testing/engines/global-setup.ts',
  globalTeardown: '<rootDir>/libs/testing/engines/global-teardown.ts',
};

export default {
  // Machines are shared and noisy, so each wait of a test has its own deadline.
  testTimeout: 30_000,
  // The modules of earlier files stay in a worker.
  workerIdleMemoryLimit: '2GB',
  projects: [
    { ...base, displayName: 'unit', testMatch: ['**/*.unit.spec.ts'] },
    { ...base, ...engines, displayName: 'int', testMatch: ['**/*.int.spec.ts'] },
    { ...base, ...engines, displayName: 'e2e', testMatch: ['**/*.e2e.spec.ts'] },
    // The form of small machines (`npm start -- --compact`) runs one spec of turns again. Its main
    // path, runs, kills and resumes are nightly tests (tools/nightly/parts.mjs).
    {
      ...base,
      ...engines,
      displayName: 'compact',
      setupFiles: ['<rootDir>/libs/testing/engines/compact-form.mjs'],
      testMatch: ['**/gateway-e2e/budget.e2e.spec.ts'],
    },
  ],
};
