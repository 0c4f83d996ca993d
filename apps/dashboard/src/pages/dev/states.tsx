import { useState, type ReactNode } from 'react';
import { PageHead } from '../../app/page-head.js';
import { ActButton } from '../../ui/act-button.js';
import { Json } from '../../ui/json.js';
import { Markdown } from '../../ui/markdown.js';
import {
  Button,
  CopyButton,
  Dialog,
  Empty,
  Field,
  Id,
  IconButton,
  Loading,
  Panel,
  ProblemBox,
  State,
  Table,
  Time,
} from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { PairView } from '../compare/pair-view.js';
import pages from '../pages.module.css';
import { ChartStates } from './chart-states.js';
import { ContextStates } from './context-states.js';
import { FormStates, ValueStates } from './more-states.js';
import { APPROVAL, EDIT_APPROVAL, HOSTILE, LONG, PAIR, TURN } from './samples.js';
import { ApprovalCard } from '../../ui/approval-card.js';
import { EditArguments } from '../../ui/edit-arguments.js';
import { TurnList } from '../session/turn-list.js';

const STATES = [
  ...['idle', 'working', 'spawning', 'paused', 'error', 'terminated', 'queued', 'running', 'pending'],
  ...['completed', 'failed', 'denied', 'granted', 'expired', 'skipped', 'cancelled', 'frozen', 'draft'],
  ...['info', 'warning', 'degraded', 'unknown'],
];
const NOTHING = new Map<string, string>();

const Sample = ({ name, children }: { readonly name: string; readonly children: ReactNode }) => (
  <Panel title={name} isPadded>
    <div className={pages.stack}>{children}</div>
  </Panel>
);

const Controls = () => {
  const [isOpen, setOpen] = useState(false);
  return (
    <Sample name="Controls">
      <div className={pages.tags}>
        <Button>Default</Button>
        <Button look="primary">Primary</Button>
        <Button look="danger" icon="trash">
          Danger
        </Button>
        <Button look="quiet">Quiet</Button>
        <Button disabled>Off</Button>
        <IconButton icon="close" label="Close the sample" />
        <CopyButton text="sample" label="Copy the sample" />
        <ActButton permission="sessions:write">Acts (off in the past)</ActButton>
        <ActButton permission="no:such">Acts (without permission)</ActButton>
        <Button onClick={() => setOpen(true)}>Open a dialog</Button>
      </div>
      <Field label="Field" hint="A hint of the field.">
        {(props) => <input {...props} defaultValue="value" />}
      </Field>
      <Field label="Invalid field" hint="Letters, digits, _ and -, a letter first">
        {(props) => <input {...props} defaultValue="1" aria-invalid />}
      </Field>
      <Field label="Choice">
        {(props) => (
          <select {...props}>
            <option>one</option>
            <option>two</option>
          </select>
        )}
      </Field>
      {isOpen && (
        <Dialog title="Dialog" onClose={() => setOpen(false)}>
          <p>Escape closes it, and the focus returns.</p>
        </Dialog>
      )}
    </Sample>
  );
};

const Texts = () => (
  <Sample name="Text of a model or a person">
    <VisibleText text={HOSTILE} />
    <Markdown text={`## Heading\n\n- a list\n- \`code\`\n\n${HOSTILE}`} />
    <p style={{ overflowWrap: 'anywhere' }}>
      <VisibleText text={LONG} />
    </p>
    <Json
      value={{ text: LONG, list: [1, true, null], nested: { deep: { deeper: 'value' } } }}
      label="Sample data"
    />
    <p>
      <Time at="2026-11-23T05:00:00.000Z" isExact /> <Id id="01a2074d-1354-7750-bd52-a2506ee67a7d" />
    </p>
  </Sample>
);

const Reads = () => (
  <Sample name="States of a read">
    <p className={pages.pad}>Loading, empty, failed, without a past:</p>
    <Loading what="a sample" />
    <Empty title="No sample yet">
      <p>An empty state says what to do.</p>
      <Button look="primary">Do it</Button>
    </Empty>
    <ProblemBox
      problem={{ message: 'the gateway did not answer', code: 'HTTP.TIMEOUT', status: 504 }}
      retry={() => undefined}
    />
    <ProblemBox problem={{ message: `${LONG} failed`, code: null, status: 500 }} />
    <ProblemBox problem={{ message: 'unknown parameter "at"', code: 'GATEWAY.INVALID_QUERY', status: 422 }} />
  </Sample>
);

/** Shows each component in its states. With `?at=` it shows them as of the past. */
export const StatesPage = () => (
  <>
    <PageHead
      title="States"
      question="How does each component look when it loads, is empty, fails, or is long?"
    />
    <div className={pages.stack}>
      <Controls />
      <Sample name="State words">
        <div className={pages.tags}>
          {STATES.map((state) => (
            <State key={state} of={state} />
          ))}
        </div>
      </Sample>
      <FormStates />
      <Reads />
      <ValueStates />
      <ChartStates />
      <Texts />
      <Panel title="Table">
        <Table label="Sample table" columns={['Name', { name: 'Number', isNumber: true }]}>
          <tr>
            <td>short</td>
            <td data-end="">1</td>
          </tr>
          <tr>
            <td>
              <VisibleText text={LONG.slice(0, 200)} />
            </td>
            <td data-end="">1,000,000</td>
          </tr>
        </Table>
      </Panel>
      <Sample name="Approval">
        <ApprovalCard approval={APPROVAL} />
        <ApprovalCard approval={EDIT_APPROVAL} />
        <ApprovalCard approval={{ ...APPROVAL, id: 'granted', status: 'granted', answeredBy: 'operator' }} />
        <EditArguments
          {...{ approvalId: 'sample', tool: 'calculator', input: APPROVAL.input, isOff: true }}
          run={() => undefined}
          approve={() => Promise.resolve()}
          close={() => undefined}
        />
      </Sample>
      <Sample name="Turn">
        <TurnList sessionId="sample" turns={[TURN]} texts={NOTHING} openBranch={() => undefined} />
      </Sample>
      <PairView pair={PAIR} number={1} a="sample" b="other" />
      <ContextStates />
    </div>
  </>
);
