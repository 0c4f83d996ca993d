import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { createProgress } from '../bootstrap/progress.mjs';
import { cacheFolder, projectRoot } from '../bootstrap/project.mjs';
import { UserError } from '../bootstrap/user-error.mjs';
import { findLooseImages } from './pin-images.mjs';
import { checkCompose } from './validate/check-compose.mjs';
import { checkDockerfile } from './validate/check-dockerfile.mjs';
import { checkNetwork } from './validate/check-network.mjs';
import { checkPods } from './validate/check-pods.mjs';
import { checkReferences } from './validate/check-references.mjs';
import { KUBERNETES_VERSIONS, checkSchemas } from './validate/check-schemas.mjs';
import { findOverlays, renderOverlay } from './validate/render-overlays.mjs';
import { ensureValidators } from './validate/validator-tools.mjs';

/*
 * `npm run validate:deploy` renders and validates k8s/, docker-compose.yml and deploy/. `--root`
 * validates another clone. `--release` also refuses images of others without a digest. `--tools`
 * only builds the programs that it needs. Exit codes are 0 for valid files, 1 for problems (each
 * with its place), 2 when the validation could not run.
 */

const checkOverlay = (tools, root, overlay) => {
  const { documents, problems } = renderOverlay(tools.kustomize, root, overlay);
  if (problems.length > 0) return { count: 0, problems };
  return {
    count: documents.length,
    problems: [
      ...checkSchemas(tools.python, overlay, documents),
      ...checkPods(overlay, documents),
      ...checkReferences(overlay, documents),
      ...checkNetwork(overlay, documents),
    ],
  };
};

const report = (name, detail, problems) => {
  console.log(`${problems.length === 0 ? 'ok    ' : 'wrong '} ${name}${detail}`);
  for (const { place, message } of problems)
    console.error(`  ${place}: ${message.replaceAll('\n', '\n    ')}`);
  return problems.length;
};

const validateAll = (tools, root, isRelease) => {
  const overlays = findOverlays(root).map((overlay) => {
    const { count, problems } = checkOverlay(tools, root, overlay);
    return report(overlay, `  ${count} documents, Kubernetes ${KUBERNETES_VERSIONS.join(', ')}`, problems);
  });
  if (overlays.length === 0)
    throw new UserError(`${root} has no overlay under k8s/overlays`, { exitCode: 2 });
  const wrong = [
    ...overlays,
    report('docker-compose.yml', '', checkCompose(tools.composeCheck, root)),
    report('deploy/Dockerfile', '', checkDockerfile(root)),
    isRelease ? report('images by digest', '', findLooseImages(root)) : 0,
  ];
  return wrong.reduce((sum, count) => sum + count, 0);
};

const main = async () => {
  const { values } = parseArgs({
    options: { root: { type: 'string' }, release: { type: 'boolean' }, tools: { type: 'boolean' } },
  });
  const progress = createProgress((line) => console.log(line));
  const context = { cache: cacheFolder(), env: process.env };
  const tools = await progress.step('tools: finding or building them', (detail) =>
    ensureValidators(context, detail),
  );
  if (values.tools) return;
  const wrong = validateAll(tools, resolve(values.root ?? projectRoot), values.release === true);
  if (wrong > 0) console.error(`${wrong} things are wrong`);
  process.exitCode = wrong > 0 ? 1 : 0;
};

try {
  await main();
} catch (error) {
  console.error(error instanceof UserError ? error.message : error);
  process.exitCode = error instanceof UserError ? error.exitCode : 2;
}
