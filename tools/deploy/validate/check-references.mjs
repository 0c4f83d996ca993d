import { SERVICES, makeSecrets, secretData } from '../secrets/secrets.mjs';
import { asList, nameOf, problem } from './problem.mjs';
import { containersOf, selects, workloadsOf } from './workloads.mjs';

/** Not made by make-secrets.mjs: providers' keys are the operator's own, and none may be needed. */
const OPTIONAL_SECRETS = ['antiphon-providers'];
/**
 * Keys that a Secret of an older version lacks. Without them the log is not signed, nothing is
 * archived, and there is no admin key and no stored credential.
 */
const OPTIONAL_KEYS = [
  'antiphon-memory/log-signing-key',
  'antiphon-memory/archiver-database-url',
  'antiphon-memory/report-public-key',
  'antiphon-migrate/archiver-database-password',
  'antiphon-gateway/bootstrap-key',
  'antiphon-agent/master-key',
];

const ofKind = (documents, kind) => documents.filter((document) => document.kind === kind);
const namesOf = (documents, kind) => new Set(ofKind(documents, kind).map(({ metadata }) => metadata.name));

const secretProblem = (known, { name, key, optional }) => {
  if (optional && !OPTIONAL_SECRETS.includes(name) && !OPTIONAL_KEYS.includes(`${name}/${key}`))
    return `Secret ${name} may not be optional`;
  if (OPTIONAL_SECRETS.includes(name)) return undefined;
  if (known[name] === undefined) return `there is no Secret ${name}`;
  return key === undefined || key in known[name] ? undefined : `Secret ${name} has no key ${key}`;
};

/** Everything that the containers of a pod refer to by name. */
const referencesOf = (pod) => {
  const containers = containersOf(pod);
  const values = containers.flatMap(({ env }) => asList(env).map(({ valueFrom }) => valueFrom ?? {}));
  const sources = containers.flatMap(({ envFrom }) => asList(envFrom));
  const volumes = asList(pod.volumes);
  return {
    secrets: [
      ...values.map(({ secretKeyRef }) => secretKeyRef),
      ...sources.map(({ secretRef }) => secretRef),
      ...volumes.map(({ secret }) => secret && { name: secret.secretName, optional: secret.optional }),
    ].filter(Boolean),
    configMaps: [
      ...values.map(({ configMapKeyRef }) => configMapKeyRef?.name),
      ...sources.map(({ configMapRef }) => configMapRef?.name),
      ...volumes.map(({ configMap }) => configMap?.name),
    ].filter(Boolean),
  };
};

const checkPodReferences = (overlay, documents, workloads) => {
  const configMaps = namesOf(documents, 'ConfigMap');
  const accounts = namesOf(documents, 'ServiceAccount');
  const known = secretData(makeSecrets(() => 'x'));
  return workloads.flatMap(({ kind, name, pod }) => {
    const { secrets, configMaps: wanted } = referencesOf(pod);
    const account = pod.serviceAccountName;
    return [
      ...secrets.map((reference) => secretProblem(known, reference)),
      ...wanted.filter((map) => !configMaps.has(map)).map((map) => `there is no ConfigMap ${map}`),
      account !== undefined && !accounts.has(account) && `there is no ServiceAccount ${account}`,
    ]
      .filter(Boolean)
      .map((message) => problem(`${overlay}: ${kind} ${name}`, message));
  });
};

const checkServices = (overlay, documents, workloads) =>
  ofKind(documents, 'Service').flatMap((service) => {
    const place = `${overlay}: ${nameOf(service)}`;
    const behind = workloads.filter(({ labels }) => selects({ matchLabels: service.spec.selector }, labels));
    if (behind.length === 0) return [problem(place, 'its selector picks no pod')];
    const ports = behind.flatMap(({ pod }) =>
      containersOf(pod).flatMap((container) => asList(container.ports)),
    );
    return asList(service.spec.ports)
      .filter(
        ({ targetPort }) =>
          !ports.some((port) => port.name === targetPort || port.containerPort === targetPort),
      )
      .map(({ targetPort }) => problem(place, `no container has the port ${targetPort}`));
  });

const checkTargets = (overlay, documents, workloads) => [
  ...ofKind(documents, 'HorizontalPodAutoscaler')
    .filter(
      ({ spec }) =>
        !workloads.some((it) => it.kind === spec.scaleTargetRef.kind && it.name === spec.scaleTargetRef.name),
    )
    .map((document) => problem(`${overlay}: ${nameOf(document)}`, 'what it scales does not exist')),
  ...ofKind(documents, 'PodDisruptionBudget')
    .filter(({ spec }) => !workloads.some(({ labels }) => selects(spec.selector, labels)))
    .map((document) => problem(`${overlay}: ${nameOf(document)}`, 'its selector picks no pod')),
];

const checkComplete = (overlay, workloads) => [
  ...SERVICES.filter(
    (service) => !workloads.some(({ kind, name }) => kind === 'Deployment' && name === service),
  ).map((service) => problem(overlay, `there is no Deployment of ${service}`)),
  ...(workloads.some(({ kind, name }) => kind === 'Job' && name === 'migrate')
    ? []
    : [problem(overlay, 'there is no migration Job')]),
];

/** Checks the references between an overlay's documents, by names, keys, selectors and ports. */
export const checkReferences = (overlay, documents) => {
  const workloads = workloadsOf(documents);
  return [
    ...checkComplete(overlay, workloads),
    ...checkPodReferences(overlay, documents, workloads),
    ...checkServices(overlay, documents, workloads),
    ...checkTargets(overlay, documents, workloads),
  ];
};
