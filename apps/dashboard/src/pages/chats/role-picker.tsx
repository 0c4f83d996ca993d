import { useIdentity } from '../../data/identity.js';
import { useRead } from '../../data/use-read.js';
import type { Speaker } from './start-chat.js';
import css from './chats.module.css';

const ROLES = 'system/agents';

const roleOf = (path: string): string | null => /^system\/agents\/([^/]+)\.md$/.exec(path)?.[1] ?? null;

/** Returns the choice of a value of the picker: `agent main`, `role critic`, or empty for the default. */
export const speakerOf = (value: string): Speaker => {
  const [kind, id] = [value.slice(0, value.indexOf(' ')), value.slice(value.indexOf(' ') + 1)];
  if (kind === 'agent') return { agent: id };
  return kind === 'role' ? { role: id } : {};
};

interface RolePickerProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** Chooses who answers: an agent, or a role that a file of the workspace defines. */
export const RolePicker = ({ value, onChange }: RolePickerProps) => {
  const { workspace } = useIdentity();
  const agents = useRead('listAgents', {}, { hasPast: false }).data?.agents ?? [];
  const files = useRead(
    'listFiles',
    { params: { id: workspace }, query: { path: ROLES } },
    { hasPast: false },
  ).data?.entries;
  const known = new Set(agents.flatMap(({ id, role }) => [id, role]));
  const roles = (files ?? []).flatMap(({ path }) => roleOf(path) ?? []).filter((role) => !known.has(role));
  const usual = agents.find(({ isDefault }) => isDefault) ?? agents[0];
  const chosen = value === '' && usual ? `agent ${usual.id}` : value;
  const tools = agents.find(({ id }) => `agent ${id}` === chosen)?.tools ?? [];
  return (
    <label className={css.role} data-tip={tools.length > 0 ? `Tools: ${tools.join(', ')}` : undefined}>
      <span className="visually-hidden">Role</span>
      <select aria-label="Role" value={chosen} onChange={(event) => onChange(event.target.value)}>
        {agents
          .filter(({ state }) => state !== 'terminated')
          .map(({ id, name, model, provider }) => (
            <option key={id} value={`agent ${id}`}>
              {name} · {model ?? provider}
            </option>
          ))}
        {roles.map((role) => (
          <option key={`role ${role}`} value={`role ${role}`}>
            {role} · role file
          </option>
        ))}
      </select>
    </label>
  );
};
