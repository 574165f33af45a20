// Builds the page into `dist/`, which the crate `node/page` embeds. File names carry no hash, and
// the output depends only on the sources and the lock file, so the gate can compare it byte for byte.
import { defineConfig } from 'vite';

export default defineConfig({
  base: '/',
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: false,
    cssCodeSplit: false,
    reportCompressedSize: false,
    rollupOptions: {
      output: {
        entryFileNames: 'page.js',
        chunkFileNames: 'page-[name].js',
        assetFileNames: 'page[extname]',
      },
    },
  },
  server: {
    host: '127.0.0.1',
    // During development Vite forwards API requests to the socket of a node.
    proxy: process.env['KLNODE_SOCKET']
      ? { '/v1': { target: { socketPath: process.env['KLNODE_SOCKET'] } as never } }
      : {},
  },
});
