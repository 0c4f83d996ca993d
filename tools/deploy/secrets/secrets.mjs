export const SERVICES = ['gateway', 'agent', 'sandbox', 'metering', 'memory'];
const NATS_USERS = ['operator', ...SERVICES];

const byName = (names, make) => Object.fromEntries(names.map((name) => [name, make()]));

/**
 * Everything secret of one installation; what `npm start` makes for a home.
 * @param {() => string} random letters, digits, `-` and `_` only: they go into URLs as they are
 */
export const makeSecrets = (random) => ({
  token: `antiphon_${random()}`,
  owner: random(),
  database: byName(SERVICES, random),
  nats: byName(NATS_USERS, random),
});

const variable = (name, what) => `ANTIPHON_${name.toUpperCase()}_${what}_PASSWORD`;

/** Every variable that docker-compose.yml asks for. */
export const composeVariables = ({ token, owner, database, nats }) => ({
  ANTIPHON_GATEWAY_TOKEN: token,
  ANTIPHON_OWNER_DATABASE_PASSWORD: owner,
  ...Object.fromEntries(SERVICES.map((name) => [variable(name, 'DATABASE'), database[name]])),
  ...Object.fromEntries(NATS_USERS.map((name) => [variable(name, 'NATS'), nats[name]])),
});

export const composeEnvironment = (secrets) =>
  Object.entries(composeVariables(secrets))
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');

const POSTGRES = 'postgres.antiphon.svc:5432/antiphon';

/** By name: the Secrets that k8s/base and k8s/overlays/local refer to, with their keys. */
export const secretData = ({ token, owner, database, nats }) => ({
  ...Object.fromEntries(
    SERVICES.map((name) => [
      `antiphon-${name}`,
      {
        'database-url': `postgresql://antiphon_${name}:${database[name]}@${POSTGRES}`,
        'nats-password': nats[name],
        ...(name === 'gateway' && { token }),
      },
    ]),
  ),
  'antiphon-migrate': {
    'database-url': `postgresql://antiphon:${owner}@${POSTGRES}`,
    ...Object.fromEntries(SERVICES.map((name) => [`${name}-database-password`, database[name]])),
  },
  'antiphon-postgres': { password: owner },
  'antiphon-nats': Object.fromEntries(NATS_USERS.map((name) => [`${name}-password`, nats[name]])),
});

/** JSON is YAML: one document a Secret. */
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
