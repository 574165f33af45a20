// Two entries side by side, for duplicates and contradictions.

import { get, post } from '../api/request';
import { useLoad } from '../api/load';
import { Panel, Ready, View } from '../parts/frame';
import { Confidence, Status, Trust } from '../parts/judgement';
import { act } from '../parts/notice';
import { Line, Passages } from '../parts/text';
import { ago } from '../parts/time';
import { entryAddress } from '../router';

export function CompareView({ codes }: { codes: string }) {
  const names = codes.split('+').slice(0, 2);
  const loaded = useLoad((signal) => Promise.all(names.map((entry) => get('/v1/entries/{entry}', { path: { entry }, signal }))), codes);
  return (
    <View title="Compare" lead="The same matter in two entries. Keep both, or let one replace the other.">
      <Ready loaded={loaded}>
        {(entries) => (
          <div class="versions">
            {entries.map((entry) => {
              const other = entries.find((one) => one.id !== entry.id);
              return (
                <Panel title={entry.code}>
                  <div class="compared">
                    <p class="strong">
                      <a href={entryAddress(entry.code)}>
                        <Line text={entry.title} empty="(no title)" />
                      </a>
                    </p>
                    <p>
                      <Status status={entry.status} reason={entry.status_reason} /> <Confidence alpha={entry.alpha} beta={entry.beta} mean={entry.mean} />{' '}
                      <Trust value={entry.trust} name={entry.author_name ?? ''} isForeign={entry.foreign} />
                    </p>
                    <Passages text={entry.content} />
                    <p class="muted small">changed {ago(entry.updated)}</p>
                    {other && (
                      <button
                        type="button"
                        onClick={() =>
                          void act(() => post('/v1/entries/{entry}/supersede', { path: { entry: other.code }, body: { by: entry.code } }), {
                            done: `${entry.code} replaces ${other.code}.`,
                            undo: () => post('/v1/entries/{entry}/supersede', { path: { entry: other.code }, body: { by: entry.code, undo: true } }),
                            command: `klnode edit ${other.code} --superseded-by ${entry.code}`,
                          })
                        }
                      >
                        Let this replace {other.code}
                      </button>
                    )}
                  </div>
                </Panel>
              );
            })}
          </div>
        )}
      </Ready>
    </View>
  );
}
