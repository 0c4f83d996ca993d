import { useState } from 'react';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { useRead } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { useCheckedForm } from '../../ui/field-errors.js';
import { Button, css as ui, Dialog, Field, ProblemBox } from '../../ui/ui.js';
import css from './plans.module.css';

/** Tool by which an agent ends a step. */
const PLAN_STEP = 'plan_step';

interface RunDialogProps {
  readonly path: string;
  readonly onClose: () => void;
}

/** Lets an agent do the open steps. Agents that cannot are listed with the reason. */
export const RunDialog = ({ path, onClose }: RunDialogProps) => {
  const { run, isBusy, problem } = useAct();
  const { data } = useRead('listAgents', { query: { limit: 500 } }, { hasPast: false });
  const agents = data?.agents.filter(({ state }) => state !== 'terminated') ?? [];
  const able = agents.filter(({ tools }) => tools.includes(PLAN_STEP));
  const others = agents.filter(({ tools }) => !tools.includes(PLAN_STEP));
  const [chosen, setChosen] = useState('');
  const agent = chosen === '' ? (able[0]?.id ?? '') : chosen;
  const { errors, props: form } = useCheckedForm((given) =>
    run(async () => {
      const maxTurns = Number(given.get('maxTurns') ?? 50);
      await client.http.runPlan({ body: { path, agent, maxTurns } });
      onClose();
    }),
  );
  return (
    <Dialog title="Run this plan" onClose={onClose}>
      <form {...form} className={css.form}>
        <p>The agent does the open steps one after another, each in a turn.</p>
        {problem && <ProblemBox problem={problem} />}
        <Field label="Agent" hint={data && able.length === 0 ? 'No agent has the tool plan_step.' : ''}>
          {(props) => (
            <select {...props} value={agent} onChange={(event) => setChosen(event.target.value)}>
              {able.map(({ id }) => (
                <option key={id}>{id}</option>
              ))}
              {others.map(({ id }) => (
                <option key={id} disabled>
                  {id}: has no tool {PLAN_STEP}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Turns at most" error={errors['maxTurns']} hint="The run ends after them.">
          {(props) => (
            <input {...props} name="maxTurns" type="number" min={1} max={1_000} defaultValue={50} />
          )}
        </Field>
        <div className={ui.dialogFoot}>
          <Button onClick={onClose}>Close</Button>
          <ActButton permission="runs:write" type="submit" look="primary" isOff={isBusy || agent === ''}>
            Run
          </ActButton>
        </div>
      </form>
    </Dialog>
  );
};
