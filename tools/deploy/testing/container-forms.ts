import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { projectRoot } from '@antiphon/bootstrap/project';

/** A folder of a container that a volume provides. */
export interface VolumeMount {
  readonly path: string;
  /** Name of a volume that outlives the container; null for its own memory or an empty folder. */
  readonly volume: string | null;
}

/** Variables with a literal value, and folders, of one container. */
export interface Container {
  readonly env: Readonly<Record<string, string>>;
  readonly mounts: readonly VolumeMount[];
}

interface ComposeService {
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly tmpfs?: readonly string[];
}

const readYaml = (path: string): unknown[] =>
  parseAllDocuments(readFileSync(join(projectRoot, path), 'utf8'), { merge: true }).map(
    (document) => document.toJS() as unknown,
  );

/** Reads a service of docker-compose.yml. A named volume outlives its containers. */
export const composeContainer = (name: string): Container => {
  const [compose] = readYaml('docker-compose.yml') as [{ services: Record<string, ComposeService> }];
  const { environment = {}, volumes = [], tmpfs = [] } = compose.services[name] ?? {};
  return {
    env: environment,
    mounts: [
      ...tmpfs.map((entry) => ({ path: entry.split(':')[0] ?? '', volume: null })),
      ...volumes
        .filter((entry) => !entry.startsWith('.'))
        .map((entry) => ({ path: entry.split(':')[1] ?? '', volume: entry.split(':')[0] ?? '' })),
    ],
  };
};

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly {
          readonly env?: readonly { readonly name: string; readonly value?: string }[];
          readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
        }[];
        readonly volumes?: readonly {
          readonly name: string;
          readonly persistentVolumeClaim?: { readonly claimName: string };
        }[];
      };
    };
  };
}

/** Reads the container of a Deployment of k8s/base, with the folders that every service has. */
export const kubernetesContainer = (file: string): Container => {
  const documents = [...readYaml(`k8s/base/${file}`), ...readYaml('k8s/base/service-pod.yaml')] as Manifest[];
  const pods = documents.filter(({ kind }) => kind === 'Deployment').map(({ spec }) => spec.template.spec);
  const containers = pods.flatMap((pod) => pod.containers);
  const claims = new Map(
    pods
      .flatMap(({ volumes = [] }) => volumes)
      .map(({ name, persistentVolumeClaim: claim }) => [name, claim?.claimName ?? null]),
  );
  const literals = containers.flatMap(({ env = [] }) =>
    env.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value] as const])),
  );
  return {
    env: Object.fromEntries([['ANTIPHON_HOME', '/var/lib/antiphon'] as const, ...literals]),
    mounts: containers
      .flatMap(({ volumeMounts = [] }) => volumeMounts)
      .map(({ name, mountPath }) => ({ path: mountPath, volume: claims.get(name) ?? null })),
  };
};

/** Names of the claims of k8s/base, which outlive every pod. */
export const kubernetesClaims = (): readonly string[] =>
  (readYaml('k8s/base/log-signer.yaml') as Manifest[])
    .filter(({ kind }) => kind === 'PersistentVolumeClaim')
    .map(({ metadata }) => metadata.name);
