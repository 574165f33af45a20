// The graph of nodes and workspaces on a canvas. A small force layout suffices for the tens of peers
// of a node, so the page carries no graph library. The list beside it holds the same facts as text.

import { useEffect, useRef } from 'preact/hooks';
import { plainText } from './text';
import { theme } from './theme';

export interface GraphNode {
  id: string;
  label: string;
  kind: 'self' | 'peer' | 'workspace';
  trust: number;
  isConnected: boolean;
}

export interface GraphEdge {
  from: string;
  to: string;
}

interface Point extends GraphNode {
  x: number;
  y: number;
  dx: number;
  dy: number;
}

const STEPS = 300;
const STEPS_PER_FRAME = 6;
const LABEL_CHARACTERS_MAX = 24;
/** The space for half a label at either side. */
const LABEL_PIXELS_MAX = 120;

function place(nodes: GraphNode[]): Point[] {
  return nodes.map((node, index) => {
    const angle = (index / nodes.length) * 2 * Math.PI;
    const radius = node.kind === 'self' ? 0 : node.kind === 'workspace' ? 0.5 : 1;
    return { ...node, x: radius * Math.cos(angle), y: radius * Math.sin(angle), dx: 0, dy: 0 };
  });
}

/** One step: nodes repel each other, edges pull, the centre holds this node. */
function step(points: Point[], edges: GraphEdge[], heat: number): void {
  const byId = new Map(points.map((point) => [point.id, point]));
  for (const one of points) {
    for (const two of points) {
      if (one === two) continue;
      const [x, y] = [one.x - two.x, one.y - two.y];
      const square = Math.max(0.01, x * x + y * y);
      // Labels are wide, so nodes keep more distance sideways.
      one.dx += (x / square) * 0.045;
      one.dy += (y / square) * 0.02;
    }
    one.dx -= one.x * 0.02;
    one.dy -= one.y * 0.02;
  }
  for (const { from, to } of edges) {
    const [one, two] = [byId.get(from), byId.get(to)];
    if (!one || !two) continue;
    const [x, y] = [two.x - one.x, two.y - one.y];
    const pull = (Math.hypot(x, y) - 0.6) * 0.08;
    one.dx += x * pull;
    one.dy += y * pull;
    two.dx -= x * pull;
    two.dy -= y * pull;
  }
  for (const point of points) {
    if (point.kind !== 'self') {
      point.x += point.dx * heat;
      point.y += point.dy * heat;
    }
    point.dx *= 0.6;
    point.dy *= 0.6;
  }
}

function draw(canvas: HTMLCanvasElement, points: Point[], edges: GraphEdge[]): void {
  const scale = devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext('2d')!;
  context.scale(scale, scale);
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const [left, right] = [Math.min(...points.map((point) => point.x)), Math.max(...points.map((point) => point.x))];
  const [top, bottom] = [Math.min(...points.map((point) => point.y)), Math.max(...points.map((point) => point.y))];
  // Each direction has its own scale, so that the graph fills a narrow canvas too.
  const zoomX = Math.min((width - LABEL_PIXELS_MAX) / Math.max(0.8, right - left), 260);
  const zoomY = Math.min((height - 90) / Math.max(0.3, bottom - top), 260);
  const at = (point: Point): [number, number] => [
    width / 2 + (point.x - (left + right) / 2) * zoomX,
    height / 2 - 8 + (point.y - (top + bottom) / 2) * zoomY,
  ];
  const byId = new Map(points.map((point) => [point.id, point]));
  context.lineWidth = 1.2;
  for (const { from, to } of edges) {
    const [one, two] = [byId.get(from), byId.get(to)];
    if (!one || !two) continue;
    const isLive = one.isConnected && two.isConnected;
    context.strokeStyle = color(isLive ? '--accent' : '--line-strong');
    context.setLineDash(isLive ? [] : [4, 4]);
    context.beginPath();
    context.moveTo(...at(one));
    context.lineTo(...at(two));
    context.stroke();
  }
  context.setLineDash([]);
  context.font = '12px system-ui';
  context.textAlign = 'center';
  for (const point of points) {
    const [x, y] = at(point);
    context.fillStyle = color('--surface');
    context.strokeStyle = color(point.kind === 'workspace' ? '--line-strong' : point.isConnected ? '--accent' : '--muted');
    context.lineWidth = 2;
    context.beginPath();
    if (point.kind === 'workspace') context.roundRect(x - 11, y - 11, 22, 22, 5);
    else context.arc(x, y, point.kind === 'self' ? 15 : 12, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
    if (point.kind === 'peer') {
      // The inner disc grows with trust.
      context.fillStyle = color('--accent');
      context.beginPath();
      context.arc(x, y, 10 * Math.sqrt(Math.max(0, Math.min(1, point.trust))), 0, 2 * Math.PI);
      context.fill();
    }
    if (point.kind === 'self') {
      context.fillStyle = color('--accent');
      context.beginPath();
      context.arc(x, y, 9, 0, 2 * Math.PI);
      context.fill();
    }
  }
  // Labels last, with a margin of the background, so that no line or disc hides one.
  context.lineWidth = 4;
  context.lineJoin = 'round';
  context.strokeStyle = color('--surface');
  context.fillStyle = color('--text');
  for (const point of points) {
    const [x, y] = at(point);
    const label = [...plainText(point.label)].slice(0, LABEL_CHARACTERS_MAX).join('');
    context.strokeText(label, x, y + 30);
    context.fillText(label, x, y + 30);
  }
}

export function PeerGraph({ nodes, edges, label }: { nodes: GraphNode[]; edges: GraphEdge[]; label: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const key = JSON.stringify([nodes, edges, theme.value]);
  useEffect(() => {
    const element = canvas.current!;
    const points = place(nodes);
    const isStill = matchMedia('(prefers-reduced-motion: reduce)').matches;
    let done = 0;
    let frame = 0;
    const advance = (steps: number) => {
      for (let count = 0; count < steps && done < STEPS; count += 1, done += 1) step(points, edges, 1 - done / STEPS);
      draw(element, points, edges);
    };
    const animate = () => {
      advance(STEPS_PER_FRAME);
      if (done < STEPS) frame = requestAnimationFrame(animate);
    };
    if (isStill) advance(STEPS);
    else animate();
    const observer = new ResizeObserver(() => draw(element, points, edges));
    observer.observe(element);
    return () => {
      cancelAnimationFrame(frame);
      observer.disconnect();
    };
  }, [key]);
  return <canvas class="graph" ref={canvas} role="img" aria-label={label} />;
}
