import { useState } from 'react';
import { useAct } from '../../data/act.js';
import { readContent } from '../../data/file-content.js';
import { client } from '../../data/gateway.js';
import { useIdentity } from '../../data/identity.js';
import { readRoleFile, ROLE_FOLDER, roleOfPath, type RoleSettings } from '../../data/role-file.js';
import { Link } from '../../data/router.js';
import { useRead } from '../../data/use-read.js';
import { Field, ProblemBox } from '../../ui/ui.js';
import { pageOfFile } from '../files/open-path.js';

interface RoleFileFieldProps {
  /** Called with the role of the chosen file and the settings that its front matter names. */
  readonly onChoose: (role: string, settings: RoleSettings) => void;
}

/** Chooses a role file, whose settings then fill the other fields. */
export const RoleFileField = ({ onChoose }: RoleFileFieldProps) => {
  const { workspace } = useIdentity();
  const [path, setPath] = useState('');
  const { run, isBusy, problem } = useAct();
  const params = { id: workspace };
  // By their paths: a workspace without role files has no such folder.
  const request = { params, query: { q: `${ROLE_FOLDER}/`, recursive: 'true' } } as const;
  const entries = useRead('listFiles', request, { hasPast: false }).data?.entries ?? [];
  const paths = entries.map((entry) => entry.path).filter((each) => roleOfPath(each) !== null);
  if (paths.length === 0) return null;
  const choose = (wanted: string): void => {
    setPath(wanted);
    const role = roleOfPath(wanted);
    if (role === null) return;
    run(async () => {
      const read = { params: { ...params, path: wanted }, bytes: true } as const;
      const content = readContent(await client.http.readFile(read));
      onChoose(role, content.kind === 'text' ? readRoleFile(content.text).settings : {});
    });
  };
  return (
    <>
      <Field
        label="Role file"
        hint={path === '' ? 'It fills the fields, and its text is the prompt.' : 'Its text is the prompt.'}
      >
        {(props) => (
          <select {...props} value={path} disabled={isBusy} onChange={(event) => choose(event.target.value)}>
            <option value="">none</option>
            {paths.map((each) => (
              <option key={each} value={each}>
                {roleOfPath(each)}
              </option>
            ))}
          </select>
        )}
      </Field>
      {path !== '' && <Link to={pageOfFile(path)}>Open {path}</Link>}
      {problem && <ProblemBox problem={problem} />}
    </>
  );
};
