import { PageHead } from '../../app/page-head.js';
import { Link } from '../../data/router.js';
import { css as ui, Panel } from '../../ui/ui.js';
import { WorkflowTable } from './workflow-table.js';

export const WorkflowList = () => (
  <>
    <PageHead
      title="Workflows"
      question="Which graphs of tasks are there, and will they run?"
      actions={
        <Link to="/workflows/new" className={`${ui.button} ${ui.primary}`}>
          Draw a workflow
        </Link>
      }
    />
    <Panel title="Workflows">
      <WorkflowTable canDelete runPage={(id, runId) => `/workflows/${id}/edit?run=${runId}`} />
    </Panel>
  </>
);
