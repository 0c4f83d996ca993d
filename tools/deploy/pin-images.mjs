import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { projectRoot } from '../bootstrap/project.mjs';

/*
 * Adds the digest to each image of others in the deployment files: `postgres:18.4` becomes
 * `postgres:18.4@sha256:…`. A digest names the same bytes for ever, also when the tag moves. Asks
 * the registries through `docker buildx imagetools`. With --check it writes nothing, and exits with
 * 1 when an image has no digest.
 */

const FILES = [
  'docker-compose.yml',
  'deploy/Dockerfile',
  'k8s/overlays/local/engines/nats.yaml',
  'k8s/overlays/local/engines/postgres.yaml',
  'k8s/overlays/local/engines/temporal.yaml',
];

/** Finds `image: NAME:TAG` and `ARG NODE_IMAGE=NAME:TAG`. Our own images are built here. */
const IMAGE = /^(\s*image: |ARG NODE_IMAGE=)((?!antiphon\/)[\w./-]+:[\w.-]+)(@sha256:[0-9a-f]{64})?$/gm;

/** Returns the images of a text, with and without a digest. */
export const findImages = (text) =>
  [...text.matchAll(IMAGE)].map(([, , image, digest]) => ({ image, digest }));

/** Returns the text with the digest that `digestOf` names for each image. */
export const pinImages = (text, digestOf) =>
  text.replaceAll(IMAGE, (_line, before, image) => `${before}${image}@${digestOf(image)}`);

const DIGEST = /^sha256:[0-9a-f]{64}$/;

const askRegistry = (image) => {
  const args = ['buildx', 'imagetools', 'inspect', image, '--format', '{{.Manifest.Digest}}'];
  const digest = execFileSync('docker', args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  }).trim();
  if (!DIGEST.test(digest)) throw new Error(`the registry named no digest for ${image}: ${digest}`);
  return digest;
};

const readFiles = (root) => FILES.map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }));

/** Returns a problem for each image of others without a digest in the deployment files of a folder. */
export const findLooseImages = (root) =>
  readFiles(root).flatMap(({ file, text }) =>
    findImages(text)
      .filter(({ digest }) => digest === undefined)
      .map(({ image }) => ({ place: file, message: `${image} has no digest` })),
  );

const check = () => {
  const loose = findLooseImages(projectRoot);
  for (const { place, message } of loose) console.error(`${place}: ${message}`);
  return loose.length === 0 ? 0 : 1;
};

const pin = (texts) => {
  const known = new Map();
  const digestOf = (image) => {
    if (!known.has(image)) known.set(image, askRegistry(image));
    return known.get(image);
  };
  for (const { file, text } of texts) {
    const pinned = pinImages(text, digestOf);
    if (pinned === text) continue;
    writeFileSync(join(projectRoot, file), pinned);
    console.log(`wrote ${file}`);
  }
  return 0;
};

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  process.exitCode = process.argv.includes('--check') ? check() : pin(readFiles(projectRoot));
}
