import { asList } from './problem.mjs';

const WORKLOADS = ['Deployment', 'StatefulSet', 'DaemonSet', 'Job', 'CronJob', 'Pod'];

/** Returns the pods of a set of documents with their workload, labels and specification. */
export const workloadsOf = (documents) =>
  documents
    .filter(({ kind }) => WORKLOADS.includes(kind))
    .map((document) => {
      const template =
        document.kind === 'Pod' ? document : ((document.spec?.jobTemplate ?? document).spec?.template ?? {});
      return {
        kind: document.kind,
        name: document.metadata?.name,
        labels: template.metadata?.labels ?? {},
        pod: template.spec ?? {},
        runsOn: document.kind !== 'Job' && document.kind !== 'CronJob',
      };
    });

export const containersOf = (pod) => [
  ...asList(pod.initContainers),
  ...asList(pod.containers),
  ...asList(pod.ephemeralContainers),
];

/** Returns true if a label selector matches. The caller refuses expressions, which are not used. */
export const selects = (selector, labels) =>
  Object.entries(selector?.matchLabels ?? {}).every(([key, value]) => labels[key] === value);
