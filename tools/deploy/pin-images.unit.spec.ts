import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { projectRoot } from '@antiphon/bootstrap/project';
import { findImages, findLooseImages, pinImages } from './pin-images.mjs';

const read = (file: string): string => readFileSync(join(projectRoot, file), 'utf8');
const digest = (letter: string): string => `sha256:${letter.repeat(64)}`;

describe('pinning images', () => {
  it.each([
    ['docker-compose.yml', ['postgres:18.4', 'nats:2.15.2-alpine', 'temporalio/temporal:1.5.1']],
    ['k8s/overlays/local/engines/postgres.yaml', ['postgres:18.4']],
    ['deploy/Dockerfile', [expect.stringMatching(/^node:\d/)]],
  ])('finds the images of others in %s', (file, images) =>
    expect(findImages(read(file)).map(({ image }) => image)).toEqual(images),
  );

  it('adds a digest, and replaces an older one', () => {
    const text = read('docker-compose.yml');
    const pinned = pinImages(text, () => digest('a'));
    expect(findImages(pinned).map((image) => image.digest)).toEqual(Array(3).fill(`@${digest('a')}`));
    expect(pinned).toContain('image: antiphon/agent:${ANTIPHON_IMAGE_TAG:-dev}\n');
    expect(pinImages(pinned, () => digest('b'))).toBe(pinned.replaceAll(digest('a'), digest('b')));
  });

  it('names each image without a digest, by its file', () => {
    const loose = findLooseImages(projectRoot);
    expect(loose.map(({ place }) => place)).toContain('deploy/Dockerfile');
    expect(loose).toContainEqual({ place: 'docker-compose.yml', message: 'postgres:18.4 has no digest' });
  });
});
