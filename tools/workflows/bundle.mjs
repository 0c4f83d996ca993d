import { writeFileSync, renameSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';

/*
 * Builds the deterministic bundle that the agent's Temporal worker runs. Bundling at run time would
 * cost each start 1 s and 60 MB, and an image its compilers (docs/adr/0057).
 */
const workflows = fileURLToPath(new URL('../../libs/agent/workflows/dist/', import.meta.url));
const target = `${workflows}bundle.js`;
const { code } = await bundleWorkflowCode({
  workflowsPath: `${workflows}index.js`,
  logger: new DefaultLogger('WARN'),
});
writeFileSync(`${target}.new`, code);
renameSync(`${target}.new`, target);
