import { asList, namesVersion, problem } from './problem.mjs';
import { containersOf, workloadsOf } from './workloads.mjs';

/** Volumes of the restricted profile that this project uses. */
const VOLUME_KINDS = ['configMap', 'secret', 'emptyDir', 'projected', 'persistentVolumeClaim', 'downwardAPI'];
const SECRET_NAME = /(PASSWORD|TOKEN|SECRET|_KEY|DATABASE_URL)$/;

const SECCOMP = ['RuntimeDefault', 'Localhost'];

/**
 * Each rule answers what is wrong, or nothing: first for a pod, then for each of its containers.
 */
const POD_RULES = [
  ({ hostNetwork, hostPID, hostIPC }) =>
    (hostNetwork || hostPID || hostIPC) && 'shares a namespace with its host',
  ({ automountServiceAccountToken }) =>
    automountServiceAccountToken !== false && 'automountServiceAccountToken is not false',
  ({ enableServiceLinks }) => enableServiceLinks !== false && 'enableServiceLinks is not false',
  ({ securityContext }) => asList(securityContext?.sysctls).length > 0 && 'sets sysctls',
  ({ volumes }) => {
    const other = asList(volumes).find((volume) => !VOLUME_KINDS.some((kind) => kind in volume));
    return other && `volume ${other.name} is of a kind that the restricted profile does not allow`;
  },
  ({ volumes }) => {
    const unbounded = asList(volumes).find((volume) => 'emptyDir' in volume && !volume.emptyDir?.sizeLimit);
    return unbounded && `volume ${unbounded.name} has no sizeLimit`;
  },
];

const inherited = (container, pod, key) => container.securityContext?.[key] ?? pod.securityContext?.[key];

const CONTAINER_RULES = [
  ({ securityContext }) => securityContext?.privileged && 'is privileged',
  ({ securityContext }) =>
    securityContext?.allowPrivilegeEscalation !== false && 'allowPrivilegeEscalation is not false',
  ({ securityContext }) =>
    !asList(securityContext?.capabilities?.drop).includes('ALL') && 'does not drop all capabilities',
  ({ securityContext }) => asList(securityContext?.capabilities?.add).length > 0 && 'adds capabilities',
  ({ securityContext }) =>
    securityContext?.readOnlyRootFilesystem !== true && 'readOnlyRootFilesystem is not true',
  ({ securityContext }) =>
    (securityContext?.procMount ?? 'Default') !== 'Default' && 'procMount is not the default',
  (container, pod) => inherited(container, pod, 'runAsNonRoot') !== true && 'runAsNonRoot is not true',
  (container, pod) => !(inherited(container, pod, 'runAsUser') > 0) && 'runAsUser is not set, or root',
  (container, pod) =>
    !SECCOMP.includes(inherited(container, pod, 'seccompProfile')?.type) && 'has no seccompProfile',
  ({ ports }) => asList(ports).some(({ hostPort }) => hostPort) && 'takes a port of its host',
  ...['requests', 'limits'].flatMap((kind) =>
    ['cpu', 'memory'].map(
      (what) =>
        ({ resources }) =>
          resources?.[kind]?.[what] === undefined && `has no ${what} in resources.${kind}`,
    ),
  ),
  ({ image }) =>
    !/(:[^/:@]+|@sha256:[0-9a-f]{64})$/.test(image ?? '') && `image ${image} has no tag or digest`,
  ({ image }) => !namesVersion(image ?? '') && `image ${image} can be another one tomorrow`,
  ({ env }) => {
    const secret = asList(env).find(
      ({ name, value }) => SECRET_NAME.test(name) && value !== undefined && !/\$\([A-Z_]+\)/.test(value),
    );
    return secret && `${secret.name} stands in the manifest instead of a Secret`;
  },
];

/** Files that must outlive their container, by the variables that name them. */
const LASTING = ['ANTIPHON_LOG_ROOTS_FILE', 'ANTIPHON_ARCHIVE_FOLDER'];

/** Reports a signer without a file of roots, and files that are in no volume of their own. */
const volumeProblems = ({ env, volumeMounts }, { volumes }) => {
  const values = new Map(asList(env).map(({ name, value }) => [name, value]));
  const claims = new Set(
    asList(volumes)
      .filter((volume) => 'persistentVolumeClaim' in volume)
      .map(({ name }) => name),
  );
  const isKept = (path) =>
    asList(volumeMounts).some(
      ({ name, mountPath }) =>
        claims.has(name) && (path === mountPath || String(path).startsWith(`${mountPath}/`)),
    );
  const signs = values.has('ANTIPHON_LOG_SIGNING_KEY') && !values.has('ANTIPHON_LOG_ROOTS_FILE');
  return [
    ...(signs ? ['signs the log without ANTIPHON_LOG_ROOTS_FILE'] : []),
    ...LASTING.filter((name) => values.has(name) && !isKept(values.get(name))).map(
      (name) => `${name} is in no persistent volume`,
    ),
  ];
};

const isAsked = (probe, path) => probe?.httpGet?.path === path;

/** Reports missing probes, and probes of own services at other addresses than their health. */
const probeProblems = (container, isService) => [
  ...['startupProbe', 'livenessProbe', 'readinessProbe']
    .filter((name) => container[name] === undefined)
    .map((name) => `has no ${name}`),
  ...(isService && !isAsked(container.livenessProbe, '/healthz')
    ? ['livenessProbe does not ask /healthz']
    : []),
  ...(isService && !isAsked(container.readinessProbe, '/readyz')
    ? ['readinessProbe does not ask /readyz']
    : []),
];

const checkWorkload = (overlay, { kind, name, labels, pod, runsOn }) => {
  const place = `${overlay}: ${kind} ${name}`;
  const isService = labels['app.kubernetes.io/component'] === 'service';
  const ofPod = POD_RULES.map((rule) => rule(pod)).filter(Boolean);
  const ofContainers = containersOf(pod).flatMap((container) => {
    const broken = [
      ...CONTAINER_RULES.map((rule) => rule(container, pod)).filter(Boolean),
      ...volumeProblems(container, pod),
    ];
    const probes =
      runsOn && asList(pod.containers).includes(container) ? probeProblems(container, isService) : [];
    return [...broken, ...probes].map((message) => `container ${container.name} ${message}`);
  });
  return [...ofPod, ...ofContainers].map((message) => problem(place, message));
};

/** Checks pods for the restricted profile, limits, probes, image tags and secrets in a manifest. */
export const checkPods = (overlay, documents) => {
  const namespace = documents.find(({ kind }) => kind === 'Namespace');
  const enforced = namespace?.metadata?.labels?.['pod-security.kubernetes.io/enforce'];
  return [
    ...(enforced === 'restricted'
      ? []
      : [problem(overlay, 'the namespace does not enforce the restricted profile')]),
    ...workloadsOf(documents).flatMap((workload) => checkWorkload(overlay, workload)),
  ];
};
