// Serves agents, one for each connection, over HTTP and WebSocket by the SDK's server, and prints its URL.
import { createServer } from "node:http";
import { createNodeHttpHandler, createNodeWebSocketUpgradeHandler } from "@agentclientprotocol/sdk/experimental/node";
import { AcpServer } from "@agentclientprotocol/sdk/experimental/server";
import { WebSocketServer } from "ws";

export function serve(createAgent) {
  const server = new AcpServer({ createAgent });
  const http = createServer(createNodeHttpHandler(server));
  const sockets = new WebSocketServer({ noServer: true });
  http.on("upgrade", createNodeWebSocketUpgradeHandler(server, sockets));
  http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/acp`));
}
