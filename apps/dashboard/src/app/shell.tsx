import { Component, Suspense, useState, type ReactNode } from 'react';
import { connection } from '../data/gateway.js';
import { useIdentity } from '../data/identity.js';
import { useStore } from '../data/store.js';
import { outdated } from '../data/use-read.js';
import { usePendingApprovals } from '../data/waiting.js';
import { Icon } from '../ui/icon.js';
import { Button, classes, css as ui, Empty, IconButton, Loading, ProblemBox } from '../ui/ui.js';
import { AttentionButton } from './attention-button.js';
import { KeyList, useKeys } from './keys.js';
import { NotifyQuestion } from './notify-question.js';
import { PageHead } from './page-head.js';
import { NAVIGATION, NAVIGATION_GROUPS, type FindPage } from './pages.js';
import { Palette } from './palette.js';
import { PositionBar } from './position-bar.js';
import { Link, useAddress, usePosition } from '../data/router.js';
import { SessionEnd } from './session-end.js';
import { nextTheme, theme } from './theme.js';
import { Tips } from './tips.js';
import { Toasts } from './toasts.js';
import { WorkspaceMenu } from './workspace-menu.js';
import css from './shell.module.css';

const isCurrentPage = (path: string, to: string): boolean =>
  to === '/' ? path === '/' : path === to || path.startsWith(`${to}/`);

const Navigation = ({ isOpen, onFollow }: { readonly isOpen: boolean; readonly onFollow: () => void }) => {
  const { path } = useAddress();
  const waiting = usePendingApprovals();
  const at = usePosition();
  return (
    <div className={css.side} data-open={isOpen ? '' : undefined} id="navigation">
      <Link to="/" className={css.brand} onClick={onFollow}>
        <img src="/icon.svg" alt="" /> Antiphon
      </Link>
      <Link to="/chats/new" className={classes(ui.button, css.newChat)} onClick={onFollow}>
        <Icon name="plus" />
        New chat
        <kbd>c</kbd>
      </Link>
      <nav aria-label="Pages" className={css.nav}>
        {NAVIGATION_GROUPS.map((group) => (
          <div key={group.title} role="group" aria-label={group.title} className={css.navGroup}>
            <span aria-hidden="true">{group.title}</span>
            {group.pages.map(({ to, title, icon }) => (
              <Link
                key={to}
                to={to}
                aria-current={isCurrentPage(path, to) ? 'page' : undefined}
                onClick={onFollow}
              >
                <Icon name={icon} />
                {title}
                {to === '/approvals' && waiting > 0 && (
                  <span className={css.count} aria-label={`${waiting} waiting${at === null ? '' : ' now'}`}>
                    {waiting}
                    {at !== null && ' now'}
                  </span>
                )}
              </Link>
            ))}
          </div>
        ))}
      </nav>
    </div>
  );
};

/** Pages of the tabs on a phone. */
const TABS = ['/', '/chats', '/files', '/attention'];

interface TabsProps {
  readonly isMenuOpen: boolean;
  readonly toggleMenu: () => void;
  readonly closeMenu: () => void;
}

/** The main pages, at the bottom of a narrow screen. */
const Tabs = ({ isMenuOpen, toggleMenu, closeMenu }: TabsProps) => {
  const { path } = useAddress();
  return (
    <nav aria-label="Main pages" className={css.tabs}>
      {NAVIGATION.filter(({ to }) => TABS.includes(to))
        .toSorted((a, b) => TABS.indexOf(a.to) - TABS.indexOf(b.to))
        .map(({ to, title, icon }) => (
          <Link
            key={to}
            to={to}
            aria-current={isCurrentPage(path, to) ? 'page' : undefined}
            onClick={closeMenu}
          >
            <Icon name={icon} />
            {title}
          </Link>
        ))}
      <button
        type="button"
        aria-expanded={isMenuOpen}
        aria-controls="navigation"
        onClick={() => {
          toggleMenu();
          scrollTo(0, 0);
        }}
      >
        <Icon name="menu" />
        More
      </button>
    </nav>
  );
};

const WORDS = { connected: 'Connected', connecting: 'Connecting …', lost: 'Connection lost' } as const;

const ConnectionState = () => {
  const { state } = useStore(connection);
  return (
    <span className={css.connection} data-state={state} role="status">
      <i aria-hidden="true" />
      <span>{WORDS[state]}</span>
    </span>
  );
};

const ICONS = { auto: 'auto', light: 'sun', dark: 'moon' } as const;

const ThemeButton = () => {
  const current = useStore(theme);
  const name = current === 'auto' ? 'as the system' : current;
  return <IconButton icon={ICONS[current]} label={`Theme: ${name}. Switch it`} onClick={nextTheme} />;
};

interface TopProps {
  readonly isMenuOpen: boolean;
  readonly toggleMenu: () => void;
  readonly openPalette: () => void;
  readonly openWorkspace: () => void;
}

const Top = ({ isMenuOpen, toggleMenu, openPalette, openWorkspace }: TopProps) => {
  const { state } = useStore(connection);
  const { workspace } = useIdentity();
  return (
    <header className={css.top}>
      <div className={css.topRow}>
        <IconButton
          icon="menu"
          label="Pages"
          className={classes(ui.iconOnly, css.menu)}
          aria-expanded={isMenuOpen}
          aria-controls="navigation"
          onClick={toggleMenu}
        />
        <button type="button" className={css.workspace} aria-haspopup="dialog" onClick={openWorkspace}>
          <span>workspace</span> {workspace}
        </button>
        <ConnectionState />
        <Button className={classes(ui.button, css.searchButton)} icon="search" onClick={openPalette}>
          <span>Go to …</span>
          <kbd>Ctrl K</kbd>
        </Button>
        <AttentionButton />
        <ThemeButton />
      </div>
      <PositionBar />
      <SessionEnd />
      <NotifyQuestion />
      {state === 'lost' && (
        <div className={css.banner} role="alert">
          <Icon name="lost" />
          The connection to the gateway is lost. It is tried again; the page continues where it stopped.
        </div>
      )}
    </header>
  );
};

/** Shows a failure of one page, and leaves the rest of the application usable. */
class Boundary extends Component<{ readonly children: ReactNode }, { readonly failure: Error | null }> {
  override state = { failure: null };
  static getDerivedStateFromError(failure: Error) {
    return { failure };
  }
  override render() {
    const { failure } = this.state as { failure: Error | null };
    if (!failure) return this.props.children;
    const problem = { message: failure.message, code: null, status: null };
    return (
      <>
        <PageHead title="This page failed" question="The rest of the dashboard still works." />
        <ProblemBox problem={problem} retry={() => location.reload()} />
      </>
    );
  }
}

interface ShellProps {
  readonly findPage: FindPage;
}

const CurrentPage = ({ findPage }: ShellProps) => {
  const { path } = useAddress();
  const found = findPage(path);
  if (!found)
    return (
      <>
        <PageHead title="There is no such page" />
        <Empty title={path}>
          <p>
            Use the navigation, or <kbd>Ctrl K</kbd> to find what you look for.
          </p>
          <Link to="/">Go to the overview</Link>
        </Empty>
      </>
    );
  const View = found.page.view;
  return (
    <Boundary key={found.page.pattern.endsWith('/*') ? found.page.pattern : path}>
      <Suspense fallback={<Loading what={found.page.title.toLowerCase()} />}>
        <View params={found.params} />
      </Suspense>
    </Boundary>
  );
};

/** Frame of every page. */
export const Shell = ({ findPage }: ShellProps) => {
  const [opened, setOpened] = useState<'palette' | 'keys' | 'workspace' | null>(null);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const isOutdated = useStore(outdated) > 0;
  useKeys({ openPalette: () => setOpened('palette'), openKeys: () => setOpened('keys') });
  return (
    <div className={css.shell}>
      <a className={css.skip} href="#main">
        Skip to the page
      </a>
      <Navigation isOpen={isMenuOpen} onFollow={() => setMenuOpen(false)} />
      <Top
        isMenuOpen={isMenuOpen}
        toggleMenu={() => setMenuOpen(!isMenuOpen)}
        openPalette={() => setOpened('palette')}
        openWorkspace={() => setOpened('workspace')}
      />
      <main
        id="main"
        tabIndex={-1}
        className={css.main}
        aria-busy={isOutdated}
        data-outdated={isOutdated || undefined}
      >
        <CurrentPage findPage={findPage} />
      </main>
      <Tabs
        isMenuOpen={isMenuOpen}
        toggleMenu={() => setMenuOpen(!isMenuOpen)}
        closeMenu={() => setMenuOpen(false)}
      />
      <Toasts />
      <Tips />
      {opened === 'palette' && <Palette findPage={findPage} onClose={() => setOpened(null)} />}
      {opened === 'workspace' && <WorkspaceMenu onClose={() => setOpened(null)} />}
      {opened === 'keys' && <KeyList onClose={() => setOpened(null)} />}
    </div>
  );
};
