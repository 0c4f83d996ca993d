import { useIdentity } from '../data/identity.js';
import { useAct } from '../data/act.js';
import { Button, css as ui, Dialog, ProblemBox } from '../ui/ui.js';
import { signOut } from './sign-in.js';

/** Names the workspace of this tab and its caller, and offers a sign-in to another workspace. */
export const WorkspaceMenu = ({ onClose }: { readonly onClose: () => void }) => {
  const { workspace, role, caller, signedInBy } = useIdentity();
  const act = useAct();
  return (
    <Dialog title="Workspace" onClose={onClose}>
      <dl className={ui.facts}>
        <dt>Workspace</dt>
        <dd>
          <bdi>{workspace}</bdi>
        </dd>
        <dt>Role</dt>
        <dd>{role}</dd>
        <dt>Signed in as</dt>
        <dd>
          <bdi>{caller}</bdi>
        </dd>
      </dl>
      <p>A key belongs to one workspace. To work in another one, sign in with a key of it.</p>
      {act.problem && <ProblemBox problem={act.problem} />}
      {signedInBy === 'session' ? (
        <Button icon="key" disabled={act.isBusy} onClick={() => act.run(signOut)}>
          Sign in to another workspace
        </Button>
      ) : (
        <p className={ui.muted}>This machine needs no sign-in for the workspace default.</p>
      )}
    </Dialog>
  );
};
