import { asList } from './problem.mjs';

const WORKLOADS = ['Deployment', 'StatefulSet', 'DaemonSet', 'Job', 'CronJob', 'Pod'];

/** The pods that a set of documents would make: who makes them, with what labels and what specification. */
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

/** Whether a label selector picks these labels; expressions are not used here, and refused by the caller. */
export const selects = (selector, labels) =>
  Object.entries(selector?.matchLabels ?? {}).every(([key, value]) => labels[key] === value);
