// Contents of each service's image. The Dockerfile's final stage copies the folder that stage.mjs
// makes from this table, and docs/deployment.md has figures of the same folder.

/**
 * Contents of one image.
 * @typedef {object} Contents
 * @property {string} main the compiled program
 * @property {readonly string[]} [files] built files that it reads, relative to the project
 * @property {readonly string[]} [resolves] own packages that it finds by name without an import
 * @property {readonly string[]} [leavesOut] packages that its code names and this service never
 * loads
 */

/** Only services that use Temporal check its health; the others never load its client. */
const WITHOUT_TEMPORAL = ['@temporalio/client'];

/** Bundlers of Temporal's worker for workflow sources; this project passes a bundle. */
const WITHOUT_BUNDLING = ['@swc/core', 'swc-loader', 'terser-webpack-plugin'];

/** @type {Readonly<Record<string, Contents>>} */
export const IMAGES = {
  gateway: {
    main: 'apps/gateway/dist/main.js',
    files: ['apps/dashboard/dist'],
    leavesOut: WITHOUT_TEMPORAL,
  },
  agent: {
    main: 'apps/agent/dist/main.js',
    resolves: ['@antiphon/agent-workflows'],
    leavesOut: WITHOUT_BUNDLING,
  },
  sandbox: { main: 'apps/sandbox/dist/main.js', files: ['plugins/dist'], leavesOut: WITHOUT_TEMPORAL },
  metering: { main: 'apps/metering/dist/main.js', leavesOut: WITHOUT_TEMPORAL },
  memory: { main: 'apps/memory/dist/main.js', leavesOut: WITHOUT_TEMPORAL },
  // `antiphon …` next to the services.
  cli: { main: 'apps/cli/dist/main.js' },
  migrate: { main: 'tools/stack/dist/deploy/migrate-main.js', files: ['prisma/migrations'] },
};

export const IMAGE_NAMES = Object.keys(IMAGES);

/** Files that no process reads at run time. */
const NEVER_READ = /(\.map|\.(d\.)?[cm]?ts|\.tsx|\.flow|\.md|\.markdown|\.tsbuildinfo|\.stamp)$/i;
const TOP_LEVEL_NEVER_READ =
  /^(test|tests|__tests__|docs?|examples?|benchmarks?|coverage|\.github|\.vscode)(\/|$)/;

/** The vendor's name of a platform in the folders of `@temporalio/core-bridge/releases`. */
const RUST_PLATFORM = { x64: 'x86_64-unknown-linux-gnu', arm64: 'aarch64-unknown-linux-gnu' };

/**
 * Rules for one package, which return true for a staged file. Paths are relative to the package.
 */
const OWN_RULES = {
  // Has the compilers of five databases, each in two sizes and two module formats.
  '@prisma/client': (path) =>
    !path.startsWith('runtime/') ||
    /^runtime\/(client\.|query_compiler_fast_bg\.postgresql\..*mjs$)/.test(path),
  // Has 137 MB for five platforms, and the Rust source.
  '@temporalio/core-bridge': (path, arch) =>
    path.startsWith('releases/')
      ? path.startsWith(`releases/${RUST_PLATFORM[arch]}/`)
      : !/^(sdk-core|src|ts|bridge-macros|scripts)\/|^Cargo\./.test(path),
};

/** Returns true if a package's file is staged. `path` is relative to the package, with `/`. */
export const isStaged = (packageName, path, arch) =>
  !NEVER_READ.test(path) &&
  !TOP_LEVEL_NEVER_READ.test(path) &&
  (OWN_RULES[packageName]?.(path, arch) ?? true);
