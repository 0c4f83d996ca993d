import { generateKeyPairSync, randomBytes } from 'node:crypto';

export const SERVICES = ['gateway', 'agent', 'sandbox', 'metering', 'memory'];
const NATS_USERS = ['operator', ...SERVICES];

const byName = (names, make) => Object.fromEntries(names.map((name) => [name, make()]));

/** Creates the key that signs the log, as base64 of its PEM: such text fits into one line. */
const makeSigningKey = () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const toText = (pem) => Buffer.from(pem).toString('base64');
  return {
    privateKey: toText(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    publicKey: toText(publicKey.export({ type: 'spki', format: 'pem' })),
  };
};

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/** Creates the text of the first admin key. The gateway makes it valid at its start. */
const makeBootstrapKey = () => {
  const id = Array.from(randomBytes(16), (byte) => BASE32[byte & 31]).join('');
  return `ak_${id}_${randomBytes(32).toString('base64url')}`;
};

/**
 * Generates the secrets of one installation, like `npm start` for a home. `random` returns letters,
 * digits, `-` and `_` only, because URLs contain them unescaped.
 */
export const makeSecrets = (random) => ({
  token: `antiphon_${random()}`,
  owner: random(),
  database: byName(SERVICES, random),
  archiver: random(),
  nats: byName(NATS_USERS, random),
  logSigning: makeSigningKey(),
  reportSigning: makeSigningKey(),
  bootstrapKey: makeBootstrapKey(),
  masterKey: randomBytes(32).toString('base64'),
});

const variable = (name, what) => `ANTIPHON_${name.toUpperCase()}_${what}_PASSWORD`;

/** Returns the variables of docker-compose.yml. */
export const composeVariables = (secrets) => ({
  ANTIPHON_GATEWAY_TOKEN: secrets.token,
  ANTIPHON_BOOTSTRAP_KEY: secrets.bootstrapKey,
  ANTIPHON_MASTER_KEY: secrets.masterKey,
  ANTIPHON_LOG_SIGNING_KEY: secrets.logSigning.privateKey,
  ANTIPHON_LOG_PUBLIC_KEY: secrets.logSigning.publicKey,
  ANTIPHON_REPORT_SIGNING_KEY: secrets.reportSigning.privateKey,
  ANTIPHON_REPORT_PUBLIC_KEY: secrets.reportSigning.publicKey,
  ANTIPHON_OWNER_DATABASE_PASSWORD: secrets.owner,
  ...Object.fromEntries(SERVICES.map((name) => [variable(name, 'DATABASE'), secrets.database[name]])),
  ANTIPHON_ARCHIVER_DATABASE_PASSWORD: secrets.archiver,
  ...Object.fromEntries(NATS_USERS.map((name) => [variable(name, 'NATS'), secrets.nats[name]])),
});

export const composeEnvironment = (secrets) =>
  Object.entries(composeVariables(secrets))
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');

const POSTGRES = 'postgres.antiphon.svc:5432/antiphon';

/** Returns the Secrets that k8s/base and k8s/overlays/local refer to, by name, with their keys. */
export const secretData = ({
  token,
  owner,
  database,
  archiver,
  nats,
  logSigning,
  reportSigning,
  bootstrapKey,
  masterKey,
}) => ({
  ...Object.fromEntries(
    SERVICES.map((name) => [
      `antiphon-${name}`,
      {
        'database-url': `postgresql://antiphon_${name}:${database[name]}@${POSTGRES}`,
        'nats-password': nats[name],
        ...(name === 'gateway' && { token, 'bootstrap-key': bootstrapKey }),
        ...(name === 'agent' && { 'master-key': masterKey }),
        ...(name === 'memory' && {
          'log-signing-key': logSigning.privateKey,
          'log-public-key': logSigning.publicKey,
          'report-public-key': reportSigning.publicKey,
          'archiver-database-url': `postgresql://antiphon_archiver:${archiver}@${POSTGRES}`,
        }),
      },
    ]),
  ),
  // For operators: no pod uses it.
  'antiphon-operator': { 'report-signing-key': reportSigning.privateKey },
  'antiphon-migrate': {
    'database-url': `postgresql://antiphon:${owner}@${POSTGRES}`,
    ...Object.fromEntries(SERVICES.map((name) => [`${name}-database-password`, database[name]])),
    'archiver-database-password': archiver,
  },
  'antiphon-postgres': { password: owner },
  'antiphon-nats': Object.fromEntries(NATS_USERS.map((name) => [`${name}-password`, nats[name]])),
});

/** Renders one YAML document per Secret, as JSON. */
export const kubernetesSecrets = (secrets) =>
  Object.entries(secretData(secrets))
    .map(([name, stringData]) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: 'antiphon', labels: { 'app.kubernetes.io/part-of': 'antiphon' } },
      type: 'Opaque',
      stringData,
    }))
    .map((document) => `---\n${JSON.stringify(document, null, 2)}\n`)
    .join('');
