import { Field } from '../../ui/ui.js';
import type { TaskSpec } from './create-dialog.js';
import css from './tasks.module.css';

interface FieldsProps {
  readonly start: Partial<TaskSpec>;
  readonly errors: Readonly<Record<string, string>>;
}

const TryFields = ({ start, errors }: FieldsProps) => (
  <>
    <Field label="Strikes" error={errors['strikes']} hint="Failed attempts until the task fails. Empty: 3.">
      {(props) => (
        <input
          {...props}
          name="strikes"
          type="number"
          min={1}
          max={10}
          defaultValue={start.retry?.strikes ?? ''}
        />
      )}
    </Field>
    <Field label="Backoff in ms" error={errors['backoffMs']} hint="Before the second attempt. Empty: 1,000.">
      {(props) => (
        <input
          {...props}
          name="backoffMs"
          type="number"
          min={0}
          max={3_600_000}
          defaultValue={start.retry?.backoffMs ?? ''}
        />
      )}
    </Field>
    <Field
      label="Budget in tokens"
      error={errors['tokens']}
      hint="For all attempts. Empty: no limit of its own."
    >
      {(props) => (
        <input {...props} name="tokens" type="number" min={1} defaultValue={start.budget?.tokens ?? ''} />
      )}
    </Field>
    <Field
      label="Budget in US dollars"
      error={errors['usd']}
      hint="For all attempts, next to the tokens. Empty: no limit of its own."
    >
      {(props) => (
        <input
          {...props}
          name="usd"
          type="number"
          min={0.000_001}
          step={0.000_001}
          defaultValue={start.budget?.microUsd ? start.budget.microUsd / 1e6 : ''}
        />
      )}
    </Field>
    <Field label="Parent task" hint="Id of the task that this one is a part of.">
      {(props) => (
        <input {...props} name="parentTask" autoComplete="off" defaultValue={start.parentTask ?? ''} />
      )}
    </Field>
  </>
);

/** Fields of a task that most tasks leave as they are. */
export const MoreFields = ({ start, errors }: FieldsProps) => (
  <details className={css.more}>
    <summary>Priority, deadline, tries, budget and parent</summary>
    <div className={css.fields}>
      <Field label="Priority" error={errors['priority']} hint="0 is the most urgent, 9 the least.">
        {(props) => (
          <input
            {...props}
            name="priority"
            type="number"
            min={0}
            max={9}
            defaultValue={start.priority ?? 5}
          />
        )}
      </Field>
      <Field label="Deadline" hint="In the time of this browser. A task that has not ended then fails.">
        {(props) => <input {...props} name="deadline" type="datetime-local" />}
      </Field>
      <TryFields start={start} errors={errors} />
    </div>
  </details>
);
