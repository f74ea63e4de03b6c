"""How the page looks: light and dark, wide, narrow and printed. Nothing is fetched from elsewhere."""

from typing import Final

STYLE: Final = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --ink: #1f2933; --muted: #52606d; --line: #d9dee4; --soft: #f5f7fa; --link: #1d4ed8;
  --good: #1b6e3c; --good-soft: #e3f4e9; --part: #8a5300; --part-soft: #fdf0d5;
  --bad: #a61b1b; --bad-soft: #fde8e8; --none: #52606d; --none-soft: #edf0f3;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #15191e; --ink: #e6e9ed; --muted: #a7b0ba; --line: #37414b; --soft: #1e242b; --link: #8ab4ff;
    --good: #7ddb9e; --good-soft: #14341f; --part: #f3c76b; --part-soft: #3a2b0c;
    --bad: #ff9d9d; --bad-soft: #421717; --none: #a7b0ba; --none-soft: #29313a;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 77rem; background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: break-word;
}
h1, h2, h3 { line-height: 1.25; text-wrap: balance; }
h1 { font-size: 1.9rem; margin: 0 0 .5rem; }
h2 { font-size: 1.45rem; margin: 3rem 0 .75rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p, dl, ol, ul { max-width: 46rem; }
a { color: var(--link); }
code { font: .9em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
nav { margin: 1.25rem 0; padding: .75rem 1rem; background: var(--soft); border-radius: .5rem; }
nav h2 { font-size: 1rem; margin: 0; padding: 0; border: 0; }
nav ol { margin: .25rem 0 0; padding-left: 1.4rem; }
.lead { font-size: 1.1rem; }
.claim { margin: 1.25rem 0; padding: 1rem 1.1rem .5rem; border: 1px solid var(--line); border-radius: .5rem; }
.claim h3 { margin: 0; }
.where { margin: .15rem 0 .5rem; color: var(--muted); font-size: .9rem; }
.found { display: grid; grid-template-columns: 10.5rem 1fr; gap: 0 1rem; margin: 0; padding: .6rem 0;
  border-top: 1px solid var(--line); max-width: none; }
.found dt { font-size: .9rem; color: var(--muted); }
.found dd { margin: 0; max-width: 52rem; }
.badge { display: block; width: fit-content; margin-top: .2rem; padding: .1rem .6rem; border-radius: 1rem;
  font-weight: 600; font-size: .85rem; color: var(--none); background: var(--none-soft); }
.holds { color: var(--good); background: var(--good-soft); }
.in-part { color: var(--part); background: var(--part-soft); }
.fails { color: var(--bad); background: var(--bad-soft); }
figure { margin: 1.5rem 0 2.25rem; }
.card { background: #ffffff; border: 1px solid var(--line); border-radius: .5rem; padding: .75rem; overflow-x: auto; }
.card img { display: block; height: auto; max-width: 100%; margin: 0 auto; }
figcaption { margin-top: .5rem; max-width: 46rem; color: var(--muted); font-size: .92rem; }
figcaption strong { color: var(--ink); }
.box { overflow-x: auto; margin: 1.5rem 0 .25rem; border: 1px solid var(--line); border-radius: .5rem; }
.box:focus-visible { outline: 2px solid var(--link); }
table { border-collapse: collapse; width: 100%; font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; font-size: .95rem; padding: .6rem; }
/* Stays in sight while the table is scrolled below it. */
caption span { display: inline-block; position: sticky; left: .6rem; max-width: calc(100vw - 4rem); }
th, td { padding: .35rem .6rem; text-align: left; vertical-align: top; border-top: 1px solid var(--line); }
td { white-space: nowrap; }
td.words { white-space: normal; min-width: 14rem; }
th { background: var(--soft); font-weight: 600; vertical-align: bottom; }
.number { text-align: right; }
tbody tr:hover { background: var(--soft); }
.note { margin: .4rem 0 2rem; color: var(--muted); font-size: .85rem; }
.terms dt { font-weight: 600; margin-top: .8rem; }
.terms dd { margin: 0 0 0 1.2rem; }
@media (max-width: 40rem) {
  body { padding-top: 1rem; }
  h1 { font-size: 1.5rem; }
  .found { grid-template-columns: 1fr; gap: .4rem; }
  .badge { display: inline-block; margin: 0 0 0 .4rem; }
  /* Drawn for a wide page: it keeps a size that can be read, and scrolls. */
  .card img { max-width: none; width: 44rem; }
  .terms dd { margin-left: 0; }
}
@media print {
  :root { --page: #fff; --ink: #000; --muted: #333; --line: #bbb; --soft: #f3f3f3; --link: #000; }
  @page { margin: 15mm; }
  html { font-size: 9.5pt; }
  body { max-width: none; padding: 0; }
  nav { display: none; }
  h2, h3, caption { break-after: avoid; }
  figure, .claim, tr { break-inside: avoid; }
  .card { border: 0; padding: 0; }
  .box { overflow: visible; border: 0; }
  table { font-size: 7pt; }
  td, td.words { white-space: normal; min-width: 0; }
  th, td { padding: .15rem .3rem; }
}
"""
