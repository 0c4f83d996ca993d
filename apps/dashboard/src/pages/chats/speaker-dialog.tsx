import { useState, type FormEvent } from 'react';
import { useRead } from '../../data/use-read.js';
import { Button, css as ui, Dialog, Field } from '../../ui/ui.js';

interface SpeakerDialogProps {
  /** Agent that has answered. */
  readonly current: string;
  readonly onChoose: (agent: string) => void;
  readonly onClose: () => void;
}

/** Asks which agent answers a message again. */
export const SpeakerDialog = ({ current, onChoose, onClose }: SpeakerDialogProps) => {
  const agents = useRead('listAgents', {}, { hasPast: false }).data?.agents ?? [];
  const [agent, setAgent] = useState(current);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onChoose(agent);
  };
  return (
    <Dialog title="Try again with another role" onClose={onClose}>
      <form onSubmit={submit} style={{ display: 'contents' }}>
        <Field label="Role" hint="Its answer begins a branch. This one stays.">
          {(props) => (
            <select {...props} value={agent} onChange={(event) => setAgent(event.target.value)}>
              {agents
                .filter(({ state }) => state !== 'terminated')
                .map(({ id, name, model, provider }) => (
                  <option key={id} value={id}>
                    {name} · {model ?? provider}
                  </option>
                ))}
            </select>
          )}
        </Field>
        <div className={ui.dialogFoot}>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit">
            Try again
          </Button>
        </div>
      </form>
    </Dialog>
  );
};
