/*
 * What the image of each service holds. The Dockerfile's final stage copies what `stage.mjs` makes of this table and
 * nothing else, and the figures in docs/deployment.md are measured on the same folder: they cannot drift apart.
 */

/**
 * `main`: the compiled program. `files`: what it reads beside its code, from the root of the project, built before.
 * `resolves`: packages of ours that it finds by name without importing them, such as the workflow bundle.
 * `leavesOut`: packages that code within reach names but this service never loads (they are imported where needed).
 * @typedef {{main: string, files?: readonly string[], resolves?: readonly string[], leavesOut?: readonly string[]}} Contents
 */

/** The health of Temporal is asked by the services that work with it; the others never load its client. */
const WITHOUT_TEMPORAL = ['@temporalio/client'];

/** Temporal's worker bundles workflows with these when it is given sources; here it is given a bundle. */
const WITHOUT_BUNDLING = ['@swc/core', 'swc-loader', 'terser-webpack-plugin'];

/** @type {Readonly<Record<string, Contents>>} */
export const IMAGES = {
  gateway: { main: 'apps/gateway/dist/main.js', leavesOut: WITHOUT_TEMPORAL },
  agent: {
    main: 'apps/agent/dist/main.js',
    resolves: ['@antiphon/agent-workflows'],
    leavesOut: WITHOUT_BUNDLING,
  },
  sandbox: { main: 'apps/sandbox/dist/main.js', files: ['plugins/dist'], leavesOut: WITHOUT_TEMPORAL },
  metering: { main: 'apps/metering/dist/main.js', leavesOut: WITHOUT_TEMPORAL },
  memory: { main: 'apps/memory/dist/main.js', leavesOut: WITHOUT_TEMPORAL },
  // `antiphon …`, for the machine or the cluster where the rest runs.
  cli: { main: 'apps/cli/dist/main.js' },
  migrate: { main: 'tools/stack/dist/deploy/migrate-main.js', files: ['prisma/migrations'] },
};

export const IMAGE_NAMES = Object.keys(IMAGES);

/** What no process reads at run time. */
const NEVER_READ = /(\.map|\.(d\.)?[cm]?ts|\.tsx|\.flow|\.md|\.markdown|\.tsbuildinfo|\.stamp)$/i;
const TOP_LEVEL_NEVER_READ =
  /^(test|tests|__tests__|docs?|examples?|benchmarks?|coverage|\.github|\.vscode)(\/|$)/;

/** The vendor's name of a platform in the folders of `@temporalio/core-bridge/releases`. */
const RUST_PLATFORM = { x64: 'x86_64-unknown-linux-gnu', arm64: 'aarch64-unknown-linux-gnu' };

/** Rules for one package: true for a file that goes with it. Paths are relative to the package. */
const OWN_RULES = {
  // 137 MB for five platforms, and the Rust source of it.
  '@temporalio/core-bridge': (path, arch) =>
    path.startsWith('releases/')
      ? path.startsWith(`releases/${RUST_PLATFORM[arch]}/`)
      : !/^(sdk-core|src|ts|bridge-macros|scripts)\/|^Cargo\./.test(path),
};

/**
 * Whether a file of a package is staged.
 * @param {string} packageName @param {string} path relative to the package, with `/` @param {'x64' | 'arm64'} arch
 */
export const isStaged = (packageName, path, arch) =>
  !NEVER_READ.test(path) &&
  !TOP_LEVEL_NEVER_READ.test(path) &&
  (OWN_RULES[packageName]?.(path, arch) ?? true);
