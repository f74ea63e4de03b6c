"""How the parts look that only this report has; the rest is in :mod:`suffice.report.sheet`."""

from typing import Final

STYLE: Final = """
body { max-width: 62rem; }
nav ol { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; padding: 0; max-width: none; list-style: none; }
.verdict { margin: 1rem 0; padding: 1rem 1.25rem; border-radius: .5rem; border-left: .4rem solid var(--none);
  background: var(--none-soft); max-width: none; }
.verdict p { margin: .35rem 0 0; }
.verdict strong { font-size: 1.3rem; line-height: 1.3; color: var(--none); }
.verdict.enough { border-color: var(--good); background: var(--good-soft); }
.verdict.enough strong { color: var(--good); }
.verdict.more { border-color: var(--part); background: var(--part-soft); }
.verdict.more strong { color: var(--part); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .75rem; margin: 1rem 0;
  padding: 0; max-width: none; list-style: none; }
.tiles li { padding: .75rem 1rem; border: 1px solid var(--line); border-radius: .5rem; color: var(--muted);
  font-size: .92rem; line-height: 1.4; }
.tiles b { display: block; color: var(--ink); font-size: 1.6rem; line-height: 1.3; font-variant-numeric: tabular-nums; }
.plot { background: var(--page); border: 1px solid var(--line); border-radius: .5rem; padding: .75rem; }
.chart { display: block; max-width: 100%; height: auto; margin: 0 auto; color: var(--ink); }
.chart.narrow { display: none; }
.chart text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  fill: var(--muted); }
.chart path { fill: none; stroke: var(--line); stroke-width: 1; }
.chart .axis { stroke: var(--muted); }
.chart .curve { stroke: var(--link); stroke-width: 2.2; stroke-linejoin: round; }
.chart .rough { stroke: var(--link); stroke-opacity: .45; stroke-linejoin: round; }
.chart .band { stroke: none; fill: var(--link); fill-opacity: .16; }
.chart .whisker { stroke: var(--link); stroke-width: 2; }
.chart .now { fill: var(--link); stroke: var(--page); stroke-width: 1.5; }
.chart .limit { stroke: var(--part); stroke-width: 1.5; stroke-dasharray: 6 4; }
.chart .stop { stroke: var(--good); stroke-width: 1.5; }
.chart .ahead { fill: var(--none); fill-opacity: .12; }
.chart .ahead-line { stroke: var(--none); stroke-dasharray: 2 3; stroke-width: 1.5; }
.chart .limit-name, .chart .stop-name, .chart .ahead-name { font-weight: 600; }
.chart .limit-name { fill: var(--part); }
.chart .stop-name { fill: var(--good); }
.chart .ahead-name { fill: var(--none); }
.bars { max-width: 46rem; }
.bars td { white-space: normal; overflow-wrap: anywhere; }
.bars td.number { white-space: nowrap; width: 6rem; }
.bars td.share { width: 45%; min-width: 7rem; vertical-align: middle; }
.bars td.share span { display: block; height: .8rem; border-radius: .2rem; background: var(--link);
  print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.not li { margin: .4rem 0; }
@media (max-width: 56rem) {
  .chart.wide { display: none; }
  .chart.narrow { display: block; width: 100%; max-width: 34rem; }
}
@media (max-width: 40rem) {
  .plot { padding: .5rem .25rem; }
  .tiles { grid-template-columns: 1fr 1fr; gap: .5rem; }
  .tiles li { padding: .5rem .7rem; }
  .tiles b { font-size: 1.3rem; }
  .bars td.number { width: auto; }
  .bars td.share { width: 30%; min-width: 4rem; }
}
@media print {
  .verdict, .tiles, .plot, .bars { break-inside: avoid; }
  .verdict, .chart .band, .chart .ahead { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .chart.wide { display: block; }
  .chart.narrow { display: none; }
  .bars table { font-size: 9pt; }
}
"""
