"""Faults to seed in the training scripts: the text, its replacement, and the line that fails.

The third text is part of the line at which the fault has to be reported; empty for the line that
was changed.
"""

FAULTS: dict[str, list[tuple[str, str, str]]] = {
    "averaged_trainer": [
        ("nn.Linear(2 * width, num_classes)", "nn.Linear(width, num_classes)", "self.fc(x)"),
        ("torch.randn(96, 3, 16, 16)", "torch.randn(95, 3, 16, 16)", "TensorDataset("),
        ("target.view(1, -1).expand_as(pred)", "target.view(-1, 1).expand_as(pred)", ""),
    ],
    "char_rnn": [
        ("nn.Linear(4 * hidden_dim, num_classes)", "nn.Linear(3 * hidden_dim, num_classes)",
         "self.fc(torch.cat"),
        ("ce(logits.transpose(1, 2), padded[:, 1:])", "ce(logits, padded[:, 1:])", ""),
        ("self.attention = nn.Linear(2 * hidden_dim, 1)", "self.attention = nn.Linear(hidden_dim, 1)",
         "self.attention(output)"),
    ],
    "compiled_segmentation": [
        ("permute(0, 3, 1, 2)", "permute(0, 3, 1)", ""),
        ("torch.cat([x2, x1], dim=1)", "torch.cat([x2, x1], dim=2)", "self.double_conv(x)"),
        ("self.up1 = Up(width * 8, width * 4 // factor, bilinear)",
         "self.up1 = Up(width * 4, width * 4 // factor, bilinear)", "self.up("),
    ],
    "crf_tagger": [
        ("nn.Linear(hidden_dim, self.tagset_size)", "nn.Linear(hidden_dim + 1, self.tagset_size)",
         "self.hidden2tag(lstm_out)"),
        ("torch.randn(2, 1, self.hidden_dim // 2), torch.randn(2, 1, self.hidden_dim // 2)",
         "torch.randn(1, 1, self.hidden_dim // 2), torch.randn(1, 1, self.hidden_dim // 2)",
         "self.lstm(embeds, self.hidden)"),
        ("torch.cat(alphas_t).view(1, -1)", "torch.cat(alphas_t).view(2, -1)", ""),
    ],
    "custom_autograd": [
        ("grad_weight = grad_output.t().mm(input)", "grad_weight = grad_output.mm(input)", ""),
        ("return grad_input, grad_weight, grad_bias", "return grad_input, grad_weight",
         "LinearFunction.apply"),
        ("self.decoder = MyLinear(latent, dim, bias=False)",
         "self.decoder = MyLinear(dim, latent, bias=False)", "input.mm(weight.t())"),
    ],
    "dcgan": [
        ("nn.BatchNorm2d(ngf * 4)", "nn.BatchNorm2d(ngf * 2)", "self.main(input)"),
        ("torch.full((batch_size,), real_label", "torch.full((batch_size, 1), real_label",
         "criterion(output, label)"),
        ("fixed_noise = torch.randn(opt.batchSize, nz, 1, 1",
         "fixed_noise = torch.randn(opt.batchSize, nz + 1, 1, 1", "self.main(input)"),
    ],
    "ddpm": [
        ("ResBlock(d_out * 2, d_in, time_dim)", "ResBlock(d_out, d_in, time_dim)",
         "self.block1(x)"),
        ("self.time(t)[:, :, None, None]", "self.time(t)[:, :, None]", ""),
        ("F.smooth_l1_loss(predicted, noise)", "F.smooth_l1_loss(predicted, noise[:, :, 1:])", ""),
    ],
    "distributed_resnet": [
        ("nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes)",
         "nn.Conv2d(inplanes, planes, 1, 1, bias=False), nn.BatchNorm2d(planes)",
         "out += identity"),
        ("self.fc = nn.Linear(width * 8, num_classes)", "self.fc = nn.Linear(width * 4, num_classes)",
         "self.fc(torch.flatten"),
        ("acc1, acc5 = accuracy(output, target, topk=(1, 5))",
         "acc1, acc5 = accuracy(output, target, topk=(1, 11))", "output.topk"),
    ],
    "dqn": [
        ("expected_state_action_values.unsqueeze(1))", "expected_state_action_values)", "criterion("),
        ("torch.tensor([[random.randrange(n_actions)]], dtype", "torch.tensor([random.randrange(n_actions)], dtype",
         "torch.cat(batch.action)"),
        ("self.layer2 = nn.Linear(128, 128)", "self.layer2 = nn.Linear(128, 64)", "self.layer3(x)"),
    ],
    "graph_network": [
        ("GATConv(hidden * heads, num_classes, heads=1, concat=False)",
         "GATConv(hidden, num_classes, heads=1, concat=False)", "self.lin(x).view(N, H, C)"),
        ("norm.view(-1, 1) * x[row]", "norm.view(1, -1) * x[row]", ""),
        ("loop.unsqueeze(0).repeat(2, 1)", "loop.unsqueeze(1).repeat(1, 2)", ""),
    ],
    "maml": [
        ("self.fc2 = nn.Linear(hidden, hidden)", "self.fc2 = nn.Linear(1, hidden)",
         "self.fc2(x)"),
        ("return xs.unsqueeze(-1), ys.unsqueeze(-1)", "return xs, ys.unsqueeze(-1)", "self.fc1(x)"),
        ("in_dims=(None, 0, 0)", "in_dims=(0, 0, 0)", ""),
    ],
    "masked_lm": [
        ("(1.0 - attention_mask[:, None, None, :]", "(1.0 - attention_mask[:, None, :]",
         "scores = scores + mask"),
        ("logits.view(-1, self.cfg.vocab_size), labels.view(-1)", "logits, labels", ""),
    ],
    "mixed_precision": [
        ("torch.arange(0, d_model, 2)", "torch.arange(0, d_model, 3)", "pe[:, 0::2]"),
        ("assert logits.dtype == amp_dtype", "assert logits.dtype == torch.float32", ""),
        ("nn.TransformerEncoderLayer(d_model, nhead,", "nn.TransformerEncoderLayer(d_model + 4, nhead,",
         "self.encoder("),
    ],
    "mixture_of_experts": [
        ("nn.Linear(4 * n_embd, n_embd)", "nn.Linear(4 * n_embd, 2 * n_embd)",
         "final_output[expert_mask] +="),
        ("targets.view(B * T)", "targets.view(B * T, 1)", ""),
        ("q @ k.transpose(-2, -1)", "q @ k", ""),
    ],
    "nanogpt": [
        ("nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)",
         "nn.Linear(config.n_embd, 2 * config.n_embd, bias=config.bias)", "q, k, v ="),
        ("y.transpose(1, 2).contiguous().view(B, T, C)", "y.contiguous().view(B, T, C // 2)", ""),
        ("torch.cat((idx, idx_next), dim=1)", "torch.cat((idx, idx_next[0]), dim=1)", ""),
    ],
    "reinforce": [
        ("nn.Linear(hidden, actions)", "nn.Linear(hidden + 1, actions)", "self.policy(h)"),
        ("model = ActorCritic(2 * env.size * env.size", "model = ActorCritic(env.size * env.size",
         "self.body(x)"),
        ("torch.stack(value_losses).mean()", "torch.cat(value_losses).mean()", ""),
    ],
    "schedules_checkpoints": [
        ("nn.LSTM(cfg.hidden, cfg.hidden, batch_first=True)",
         "nn.LSTM(cfg.hidden * 2, cfg.hidden, batch_first=True)", "self.rnn(h)"),
        ("self.conv(x.unsqueeze(1)).transpose(1, 2)", "self.conv(x.unsqueeze(2)).transpose(1, 2)",
         ""),
        ("yield torch.randn(24), torch.randn(4)", "yield torch.randn(24), torch.randn(5)",
         "nn.functional.l1_loss"),
    ],
    "seq2seq": [
        ("nn.GRU(2 * hidden_size, hidden_size, batch_first=True)",
         "nn.GRU(hidden_size, hidden_size, batch_first=True)", "self.gru(input_gru, hidden)"),
        ("scores.squeeze(2).unsqueeze(1)", "scores.squeeze(2)", "torch.bmm(weights, keys)"),
        ("torch.zeros((n, MAX_LENGTH), dtype=torch.long)\n    target",
         "torch.zeros((n + 1, MAX_LENGTH), dtype=torch.long)\n    target", "TensorDataset("),
    ],
    "siamese": [
        ("nn.Linear(self.fc_in_features * 2, 256)", "nn.Linear(self.fc_in_features, 256)",
         "self.fc(output)"),
        ("outputs = model(images_1, images_2).squeeze(1)\n        loss",
         "outputs = model(images_1, images_2)\n        loss", "criterion(outputs, targets)"),
        ("contrastive(one, two, targets.unsqueeze(1))", "contrastive(one, two[:, 1:], targets)",
         "F.pairwise_distance"),
    ],
    "simclr": [
        ("nn.Linear(64, 4 * hidden_dim)", "nn.Linear(32, 4 * hidden_dim)",
         "self.head(self.convnet(x))"),
        ("nn.Conv2d(cin, self.expansion * cout, kernel_size=1, stride=stride, bias=False)",
         "nn.Conv2d(cin, self.expansion * cout, kernel_size=1, bias=False)", "self.shortcut(x)"),
        ("sim = feats @ feats.T", "sim = feats @ feats", ""),
    ],
    "style_transfer": [
        ("input.view(a * b, c * d)", "input.view(a * b, c)", ""),
        ("torch.mm(features, features.t())", "torch.mm(features, features)", ""),
        ("F.mse_loss(G, self.target)", "F.mse_loss(G, self.target[1:])", ""),
    ],
    "vae": [
        ("self.fc3 = nn.Linear(20, 400)", "self.fc3 = nn.Linear(40, 400)", "self.fc3(z)"),
        ("F.binary_cross_entropy(recon_x, x.view(-1, 784)", "F.binary_cross_entropy(recon_x, x", ""),
        ("torch.randn(64, 20).to(device)", "torch.randn(64, 21).to(device)", "self.fc3(z)"),
    ],
    "wgan_gp": [
        ("nn.Linear(512, 256)", "nn.Linear(512, 128)", "self.model(img_flat)"),
        ("Tensor(real_samples.shape[0], 1).fill_(1.0)", "Tensor(real_samples.shape[0], 2).fill_(1.0)",
         "gradients = autograd.grad("),
        ("(imgs.shape[0], opt.latent_dim)", "(imgs.shape[0], opt.latent_dim + 1)",
         "self.model(z)"),
    ],
    "word2vec": [
        ("input_vectors.view(batch_size, embed_size, 1)", "input_vectors.view(batch_size, 1, embed_size)",
         "torch.bmm(output_vectors"),
        ("torch.mm(valid_vectors, embed_vectors.t())", "torch.mm(valid_vectors, embed_vectors)", ""),
        ("view(batch_size, n_samples, self.n_embed)", "view(batch_size, n_samples, self.n_embed + 1)",
         "noise_loss = torch.bmm"),
    ],
}  # fmt: skip
