// Curves on uPlot: colours of the theme, a size that follows the container, and a text for screen
// readers.

import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { theme } from './theme';

export interface Series {
  label: string;
  values: (number | null)[];
  color: string;
  fill?: string;
  width?: number;
  dash?: number[];
}

interface CurveProps {
  x: number[];
  series: Series[];
  /** Fills the area between two series, by their numbers from 1. */
  band?: [number, number];
  height: number;
  label: string;
  isTime?: boolean;
  formatX?: (value: number) => string;
  formatY?: (value: number) => string;
  range?: [number, number];
}

function color(name: string): string {
  return name.startsWith('--') ? getComputedStyle(document.documentElement).getPropertyValue(name).trim() : name;
}

function options(props: CurveProps, width: number): uPlot.Options {
  const axis = { stroke: color('--muted'), grid: { stroke: color('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui' };
  const { formatX, formatY } = props;
  return {
    width,
    height: props.height,
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
    scales: { x: { time: props.isTime ?? false }, y: props.range ? { range: props.range } : { range: (_self, _low, high) => [0, Math.max(1, high * 1.1)] } },
    axes: [
      { ...axis, size: 24, ...(formatX ? { values: (_self: uPlot, values: number[]) => values.map(formatX) } : {}) },
      { ...axis, size: 48, ...(formatY ? { values: (_self: uPlot, values: number[]) => values.map(formatY) } : {}) },
    ],
    series: [
      {},
      ...props.series.map((one) => ({
        label: one.label,
        stroke: color(one.color),
        width: one.width ?? 2,
        points: { show: false },
        ...(one.fill ? { fill: color(one.fill) } : {}),
        ...(one.dash ? { dash: one.dash } : {}),
      })),
    ],
    ...(props.band ? { bands: [{ series: props.band, fill: color('--accent-soft') }] } : {}),
  };
}

export function Curve(props: CurveProps) {
  const box = useRef<HTMLDivElement>(null);
  const shown = theme.value;
  const key = JSON.stringify([props.x, props.series, shown]);
  useEffect(() => {
    const element = box.current!;
    const plot = new uPlot(options(props, element.clientWidth), [props.x, ...props.series.map((one) => one.values)], element);
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: props.height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [key]);
  return <div class="curve" ref={box} role="img" aria-label={props.label} style={{ height: `${props.height}px` }} />;
}
